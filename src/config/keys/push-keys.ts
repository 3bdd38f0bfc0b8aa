import { createECDH, createPrivateKey, X509Certificate } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { isJson, SERVICE_ACCOUNT_DESCRIPTION } from './google-key.ts';
import { keyPathForMessage } from '../key-path-for-message.ts';

/** A service account at Google, with the private key that signs requests for access tokens. */
export interface ServiceAccount {
  readonly clientEmail: string;
  /** Google's id of the key; null: the file does not contain it. */
  readonly keyId: string | null;
  readonly privateKey: KeyObject;
}

const MAX_KEY_FILE_BYTES = 65_536;

/**
 * Reads a service account from `jsonOrPath`, JSON or the absolute path of a file with JSON. Returns a sentence with
 * the reason if the key cannot be used; the sentence quotes no part of the key.
 */
export function readServiceAccount(projectId: string, jsonOrPath: string): ServiceAccount | string {
  const name = isJson(jsonOrPath) ? 'the JSON' : keyPathForMessage(jsonOrPath);
  const contentOrProblem = isJson(jsonOrPath) ? { content: jsonOrPath } : readKeyText(jsonOrPath, name);
  if (typeof contentOrProblem === 'string') return contentOrProblem;
  const fields = parseJsonObject(contentOrProblem.content);
  if (fields === null)
    return `${name} is ${isJson(jsonOrPath) ? 'damaged' : 'not JSON'}: expected ${SERVICE_ACCOUNT_DESCRIPTION}`;
  return serviceAccountFromFields(fields, projectId, name);
}

function serviceAccountFromFields(
  fields: Record<string, unknown>,
  projectId: string,
  nameInMessages: string,
): ServiceAccount | string {
  if ('project_info' in fields)
    return `${nameInMessages} is the configuration of an app; expected ${SERVICE_ACCOUNT_DESCRIPTION}`;
  const { type, client_email: email, private_key: pem, private_key_id: keyId, project_id: project } = fields;
  if (type !== 'service_account')
    return `${nameInMessages} is not a service account; expected ${SERVICE_ACCOUNT_DESCRIPTION}`;
  if (typeof email !== 'string' || !/^[\x21-\x7e]{3,320}$/.test(email))
    return `${nameInMessages} lacks its client_email`;
  if (typeof pem !== 'string') return `${nameInMessages} lacks its private_key`;
  // A project of Google has an id and a number. The file contains only the id, so a configured number cannot be
  // compared.
  if (!/^\d+$/.test(projectId) && project !== projectId) {
    const projectForMessage =
      typeof project === 'string' && /^[A-Za-z0-9.:-]{1,100}$/.test(project) ? project : 'another project';
    return `${nameInMessages} is of ${projectForMessage}, not of ${projectId}`;
  }
  const privateKey = parsePrivateKey(pem);
  if (typeof privateKey === 'string') return `the private_key of ${nameInMessages} ${privateKey}`;
  if (privateKey.asymmetricKeyType !== 'rsa') {
    return `the private_key of ${nameInMessages} is of the type ${privateKey.asymmetricKeyType}, expected RSA`;
  }
  return { clientEmail: email, keyId: typeof keyId === 'string' ? keyId : null, privateKey };
}

/** Reads the key in a .p8 file. Returns a sentence with the reason if it cannot be used. */
export function readAppleKey(path: string): KeyObject | string {
  const name = keyPathForMessage(path);
  const contentOrProblem = readKeyText(path, name);
  if (typeof contentOrProblem === 'string') return contentOrProblem;
  if (!contentOrProblem.content.includes('-----BEGIN'))
    return `${name} is not a .p8 file: it begins with "BEGIN PRIVATE KEY"`;
  const key = parsePrivateKey(contentOrProblem.content);
  if (typeof key === 'string') return `${name} ${key}`;
  const { namedCurve = '' } = key.asymmetricKeyDetails ?? {};
  if (key.asymmetricKeyType === 'ec' && namedCurve === 'prime256v1') return key;
  return `${name} holds a key of the type ${key.asymmetricKeyType} ${namedCurve}, expected ec prime256v1 (P-256)`;
}

/** Reads the certificates in a PEM file. Returns a sentence with the reason if the file cannot be used. */
export function readCaFile(path: string): { readonly pem: string } | string {
  const name = keyPathForMessage(path);
  const contentOrProblem = readKeyText(path, name);
  if (typeof contentOrProblem === 'string') return contentOrProblem;
  try {
    const certificate = new X509Certificate(contentOrProblem.content);
    if (certificate.ca || certificate.issuer === certificate.subject) return { pem: contentOrProblem.content };
    return `${name} is not the certificate of an authority`;
  } catch {
    // The error is not quoted: the file may be a private key that was mistaken for a certificate.
    return `${name} is no certificate in PEM`;
  }
}

/**
 * Checks that two keys in base64url belong together. Returns the problem, as a sentence about the private key; null:
 * there is none.
 */
export function webPushPairProblem(publicKey: string, privateKey: string): string | null {
  const pair = createECDH('prime256v1');
  try {
    pair.setPrivateKey(privateKey, 'base64url');
    if (pair.getPublicKey().equals(Buffer.from(publicKey, 'base64url'))) return null;
  } catch {
    // The private key is zero, or not less than the order of the curve: no public key belongs to it.
  }
  return 'does not belong to services.web-push.public: "klatch setup" makes a pair';
}

function parsePrivateKey(pem: string): KeyObject | string {
  if (/-----BEGIN ENCRYPTED/.test(pem)) return 'is locked with a passphrase, which nobody could type at a start';
  try {
    return createPrivateKey(pem);
  } catch {
    // OpenSSL's error is not quoted, since it can repeat its input.
    return 'is no private key in PEM, or a damaged one';
  }
}

function parseJsonObject(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : null;
  } catch {
    // The parser's error is not quoted, since it repeats its input.
    return null;
  }
}

function readKeyText(path: string, nameInMessages: string): { readonly content: string } | string {
  try {
    const stat = statSync(path);
    if (!stat.isFile()) return `${nameInMessages} is not a file`;
    return stat.size > MAX_KEY_FILE_BYTES
      ? `${nameInMessages} is too large for a key`
      : { content: readFileSync(path, 'utf8') };
  } catch (error) {
    const { code = 'unknown' } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return `${nameInMessages} does not exist`;
    return `${nameInMessages} cannot be read (${code})`;
  }
}
