import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ConversationId, Seq } from '../../src/model/ids.ts';
import type { PushNotification } from '../../src/push/vendors/vendor.ts';

const pkcs8 = { type: 'pkcs8', format: 'pem' } as const;

/** A service account in the form of Google's file, and the key that verifies its tokens. */
export interface TestAccount {
  readonly projectId: string;
  readonly clientEmail: string;
  readonly publicKey: KeyObject;
  /** The content of the file, in JSON. */
  readonly json: string;
}

export function createServiceAccount(projectId = 'klatch-test'): TestAccount {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const clientEmail = `pusher@${projectId}.iam.gserviceaccount.com`;
  const json = JSON.stringify(
    {
      type: 'service_account',
      project_id: projectId,
      private_key_id: 'key-1',
      private_key: privateKey.export(pkcs8),
      client_email: clientEmail,
      token_uri: 'https://elsewhere.example/token',
    },
    null,
    2,
  );
  return { projectId, clientEmail, publicKey, json };
}

/** A key of Apple's push service. */
export interface TestAppleKey {
  readonly keyId: string;
  readonly teamId: string;
  readonly publicKey: KeyObject;
  /** The content of its .p8 file. */
  readonly p8: string;
}

export function createAppleKey(keyId = 'KEY1234567', teamId = 'TEAM123456'): TestAppleKey {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return { keyId, teamId, publicKey, p8: privateKey.export(pkcs8) as string };
}

/** A certificate for 127.0.0.1 and localhost, with the certificate of its authority, in PEM. */
export interface TestTls {
  readonly authority: string;
  readonly cert: string;
  readonly key: string;
}

/** Creates an authority and a certificate with openssl. */
export function createTls(): TestTls {
  const folder = mkdtempSync(join(tmpdir(), 'klatch-apns-'));
  const at = (name: string): string => join(folder, name);
  const openssl = (...args: string[]): void => void execFileSync('openssl', args, { stdio: 'pipe', cwd: folder });
  const ec = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
  try {
    openssl('req', '-x509', ...ec, '-keyout', 'ca.key', '-out', 'ca.crt', '-days', '2', '-subj', '/CN=Test CA');
    openssl('req', ...ec, '-keyout', 'server.key', '-out', 'server.csr', '-subj', '/CN=localhost');
    writeFileSync(at('san'), 'subjectAltName=DNS:localhost,IP:127.0.0.1\n');
    const sign = ['-CA', 'ca.crt', '-CAkey', 'ca.key', '-CAcreateserial', '-days', '2', '-extfile', 'san'];
    openssl('x509', '-req', '-in', 'server.csr', '-out', 'server.crt', ...sign);
    const read = (name: string): string => readFileSync(at(name), 'utf8');
    return { authority: read('ca.crt'), cert: read('server.crt'), key: read('server.key') };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A notification about a message of group 7, with the given changes. */
export function note(changes: Partial<PushNotification> = {}): PushNotification {
  return {
    conversationId: 7 as ConversationId,
    firstSeq: 3 as Seq,
    lastSeq: 4 as Seq,
    title: 'Lunch',
    text: 'Anna: soup today',
    accountUnreadCount: 2,
    urgent: false,
    expiresAt: new Date(Date.now() + 3_600_000),
    ...changes,
  };
}

/** A list that contains the same value this many times. */
export function times<T>(count: number, value: T): T[] {
  return Array.from({ length: count }, () => value);
}
