import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import type { Config, EndpointConfig } from './config.ts';
import { keyPathForMessage } from './key-path-for-message.ts';
import { ConfigError } from './problem.ts';

/** The certificate and key of a TLS listener, with the fingerprint of the certificate. */
export interface EndpointTls {
  /** PEM texts. The certificate includes the intermediate certificates, if the file has them. */
  readonly pem: { readonly cert: string; readonly key: string };
  /** SHA-256 of the certificate, in hexadecimal digits with colons. */
  readonly certificateFingerprint: string;
}

/** Why a file of an endpoint cannot be used. `sentence` begins with the name of the file. */
interface EndpointTlsProblem {
  readonly which: 'certificate' | 'key';
  readonly sentence: string;
}

/** What a message says for an error code of the file system. For other codes it says the code. */
const REASON_BY_ERRNO: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  ENOTDIR: 'there is no such file',
  EACCES: 'this user may not read it: look at the owner and rights of the file and its folders',
  EISDIR: 'it is a folder',
};

/**
 * Reads the certificate and the key of each endpoint; null for an endpoint without TLS. Throws ConfigError, which names
 * the endpoint and the file that cannot be used.
 */
export function readEndpointTls({ file, endpoints }: Pick<Config, 'file' | 'endpoints'>): (EndpointTls | null)[] {
  return endpoints.map((endpoint, index) => {
    const tlsOrProblem = readTls(endpoint);
    if (tlsOrProblem === null || 'pem' in tlsOrProblem) return tlsOrProblem;
    const { which, sentence } = tlsOrProblem;
    throw new ConfigError([{ file, line: null, key: `endpoints[${index}].${which}`, sentence }]);
  });
}

/**
 * Reads the certificate and the key of an endpoint. Returns a problem if one of the files cannot be used; null for an
 * endpoint without TLS.
 */
export function readTls({ type, port, tls }: EndpointConfig): EndpointTls | EndpointTlsProblem | null {
  if (tls === null) return null;
  const tlsOrProblem = readKeyPair(tls);
  if ('pem' in tlsOrProblem) return tlsOrProblem;
  const { which, sentence } = tlsOrProblem;
  return { which, sentence: `the ${type} endpoint of port ${port} cannot use ${sentence}` };
}

/**
 * Reads a certificate and its key. Returns a problem, such as "key.pem: there is no such file", if one of the files
 * cannot be used.
 */
export function readKeyPair(files: {
  readonly certificate: string;
  readonly key: string;
}): EndpointTls | EndpointTlsProblem {
  const refuse = (which: EndpointTlsProblem['which'], why: string): EndpointTlsProblem => {
    return { which, sentence: `${keyPathForMessage(files[which])}: ${why}` };
  };
  const certificateFile = resultOrErrorCode(() => readFileSync(files.certificate, 'utf8'));
  if ('errorCode' in certificateFile) return refuse('certificate', unreadableReason(certificateFile.errorCode));
  const keyFile = resultOrErrorCode(() => readFileSync(files.key, 'utf8'));
  if ('errorCode' in keyFile) return refuse('key', unreadableReason(keyFile.errorCode));
  const [cert, key] = [certificateFile.result, keyFile.result];
  const certificate = nullIfThrows(() => new X509Certificate(cert));
  if (certificate === null) return refuse('certificate', 'it is no certificate in PEM');
  const privateKey = nullIfThrows(() => createPrivateKey(key));
  if (privateKey === null) return refuse('key', 'it is no private key in PEM without a password');
  if (!certificate.checkPrivateKey(privateKey))
    return refuse('key', `it does not belong to ${keyPathForMessage(files.certificate)}`);
  const context = resultOrErrorCode(() => createSecureContext({ cert, key }));
  if ('errorCode' in context)
    return refuse('certificate', `TLS refuses it (${context.errorCode}): make another certificate`);
  return { pem: { cert, key }, certificateFingerprint: certificate.fingerprint256 };
}

function unreadableReason(errorCode: string): string {
  return REASON_BY_ERRNO[errorCode] ?? `it cannot be read (${errorCode})`;
}

/**
 * Returns the result of `work`, or the code of the error that it throws. The error's message is dropped, since it may
 * quote the key.
 */
function resultOrErrorCode<T>(work: () => T): { readonly result: T } | { readonly errorCode: string } {
  try {
    return { result: work() };
  } catch (error) {
    return { errorCode: (error as NodeJS.ErrnoException).code ?? 'unknown error' };
  }
}

/** Returns the result of `work`; null if it throws. The error is dropped, since it may quote the key. */
function nullIfThrows<T>(work: () => T): T | null {
  try {
    return work();
  } catch {
    return null;
  }
}
