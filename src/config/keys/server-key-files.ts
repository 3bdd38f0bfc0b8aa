import { createPrivateKey, createPublicKey, generateKeyPairSync } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { chownSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { describePublicKey, type PublicServerKey, type ServerKey } from '../../model/server-key.ts';
import type { ServerKeyFiles } from '../config.ts';
import { syncFolder, writeNewFile } from '../durable-file.ts';
import type { FileOwner } from '../durable-file.ts';
import { keyPathForMessage } from '../key-path-for-message.ts';
import { ConfigError } from '../problem.ts';

/** The problem of one of the two files of a key pair, as a sentence about the file. */
interface SigningKeyFileProblem {
  readonly which: keyof ServerKeyFiles;
  readonly sentence: string;
}

const MAX_KEY_FILE_BYTES = 65_536;
const RAW_KEY_BYTES = 32;
const PEM_LABELS = { public: 'PUBLIC KEY', private: 'PRIVATE KEY' } as const;
const NEW_PAIR_ADVICE = 'run "klatch keys generate", or openssl genpkey -algorithm ed25519';

/**
 * Checks a pair of server keys: both files must exist, contain Ed25519 keys as PEM (PKCS#8 and SPKI), and belong
 * together. Returns the problems; no sentence quotes the content of a file.
 */
export function checkServerKeyPair(files: ServerKeyFiles): readonly SigningKeyFileProblem[] {
  const publicKey = readPemKey(files.public, 'public');
  const privateKey = readPemKey(files.private, 'private');
  const problems: SigningKeyFileProblem[] = [];
  if (typeof publicKey === 'string') problems.push({ which: 'public', sentence: publicKey });
  if (typeof privateKey === 'string') problems.push({ which: 'private', sentence: privateKey });
  if (typeof publicKey === 'string' || typeof privateKey === 'string') return problems;
  if (createPublicKey(privateKey).equals(publicKey)) return [];
  const sentence = `${keyPathForMessage(files.private)} does not belong to the public key in ${keyPathForMessage(files.public)}`;
  return [{ which: 'private', sentence }];
}

/**
 * Reads the keys of these pairs, in their order. Throws ConfigError with the problem that `checkServerKeyPair` finds,
 * since the files may have changed after the configuration was checked.
 */
export function readServerKeys(pairs: readonly ServerKeyFiles[]): ServerKey[] {
  return pairs.map((files) => {
    const [problem] = checkServerKeyPair(files);
    const privateKey = problem?.sentence ?? readPemKey(files.private, 'private');
    if (typeof privateKey === 'string') {
      const key = 'modules.security.server-keys';
      throw new ConfigError([{ file: keyPathForMessage(files.private), line: null, key, sentence: privateKey }]);
    }
    return { ...describePublicKey(createPublicKey(privateKey)), privateKey };
  });
}

/** The public key in a file, in the form that people are shown; null if it cannot be read. */
export function describePublicKeyFile(path: string): PublicServerKey | null {
  const key = readPemKey(path, 'public');
  return typeof key === 'string' ? null : describePublicKey(key);
}

/** True if every user of this machine can read the file, by its mode. False if that cannot be determined. */
export function isReadableByOthers(path: string): boolean {
  try {
    return (statSync(path).mode & 0o004) !== 0;
  } catch (error) {
    // This error is not reported here: the read of the file reports it.
    if (typeof error === 'object' && error !== null && 'code' in error) return false;
    throw error;
  }
}

/** Reads the key in a file. Returns a sentence with the reason if it cannot be used. */
function readPemKey(path: string, which: keyof ServerKeyFiles): KeyObject | string {
  const name = keyPathForMessage(path);
  const bytes = readBytes(path, name);
  if (typeof bytes === 'string') return bytes;
  const pem = bytes.toString('latin1');
  const label = /-----BEGIN ([A-Z0-9 ]+)-----/.exec(pem)?.[1];
  if (label === undefined && bytes.length === RAW_KEY_BYTES) {
    return `${name} holds a raw 32-byte key as the original system wrote it, Klatch reads PEM: to make a new pair, ${NEW_PAIR_ADVICE}`;
  }
  if (label === undefined) return `${name} is not a PEM file: to make a new pair, ${NEW_PAIR_ADVICE}`;
  if (label === 'ENCRYPTED PRIVATE KEY')
    return `${name} is locked with a passphrase, which nobody could type at a start`;
  if (label !== PEM_LABELS[which]) return `${name} holds "${label}", expected "${PEM_LABELS[which]}" in its first line`;
  return parsePemKey(pem, name, which);
}

function parsePemKey(pem: string, nameInMessages: string, which: keyof ServerKeyFiles): KeyObject | string {
  try {
    const key = which === 'public' ? createPublicKey(pem) : createPrivateKey(pem);
    if (key.asymmetricKeyType === 'ed25519') return key;
    return `${nameInMessages} holds a key of the type ${key.asymmetricKeyType ?? 'unknown'}, expected ed25519: ${NEW_PAIR_ADVICE}`;
  } catch (error) {
    // Only the error's code is shown: OpenSSL's message is about its decoder's internals, and can repeat the input.
    return `${nameInMessages} is a damaged PEM file (${errorCodeOf(error)})`;
  }
}

function readBytes(path: string, nameInMessages: string): Buffer | string {
  try {
    const stat = statSync(path);
    if (!stat.isFile()) return `${nameInMessages} is not a file`;
    return stat.size > MAX_KEY_FILE_BYTES ? `${nameInMessages} is too large for a key` : readFileSync(path);
  } catch (error) {
    const code = errorCodeOf(error);
    if (code === 'ENOENT' || code === 'ENOTDIR') return `${nameInMessages} does not exist`;
    return `${nameInMessages} cannot be read (${code})`;
  }
}

function errorCodeOf(error: unknown): string {
  // `instanceof` is not used: in tests, errors of Node's own modules are from another realm.
  return typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : 'no code';
}

/** The files of a pair of server keys. `created`: true if this call created them. */
interface EnsuredServerKeys extends ServerKeyFiles {
  readonly created: boolean;
}

/**
 * Creates a folder if it does not exist. Gives new folders to the group of the keys' owner, who could not reach the
 * keys otherwise.
 */
function createGroupAccessibleFolder(folder: string, owner: FileOwner | undefined): void {
  const first = mkdirSync(folder, { recursive: true, mode: 0o750 });
  if (first === undefined || owner === undefined) return;
  for (let path = resolve(folder); ; path = dirname(path)) {
    chownSync(path, statSync(path).uid, owner.gid);
    if (path === resolve(first) || path === dirname(path)) return;
  }
}

/** The paths of the two files of a key pair in this folder. */
export function serverKeyPaths(folder: string): ServerKeyFiles {
  return { public: join(folder, 'server-key.public.pem'), private: join(folder, 'server-key.private.pem') };
}

/**
 * Creates `server-key.private.pem` (0600) and `server-key.public.pem` (0644) in `folder`, and syncs them. Keeps an
 * existing pair. Writes the private file first: if a run is interrupted, the next one derives the public key from it.
 * Throws if the existing files do not belong together.
 */
export function ensureServerKeys(folder: string, options: { readonly owner?: FileOwner } = {}): EnsuredServerKeys {
  const files = serverKeyPaths(folder);
  createGroupAccessibleFolder(folder, options.owner);
  const exists = (path: string): boolean => statSync(path, { throwIfNoEntry: false }) !== undefined;
  if (exists(files.public)) {
    const [problem] = checkServerKeyPair(files);
    if (problem !== undefined) throw new Error(`${problem.sentence}. Move both files away to get a new pair.`);
    return { ...files, created: false };
  }
  let privateKey: KeyObject | string;
  if (exists(files.private)) {
    privateKey = readPemKey(files.private, 'private');
    if (typeof privateKey === 'string') throw new Error(`${privateKey}. Move the file away to get a new pair.`);
  } else {
    ({ privateKey } = generateKeyPairSync('ed25519'));
    writeNewFile(files.private, privateKey.export({ type: 'pkcs8', format: 'pem' }), { ...options, mode: 0o600 });
  }
  const publicPem = createPublicKey(privateKey).export({ type: 'spki', format: 'pem' });
  writeNewFile(files.public, publicPem, { ...options, mode: 0o644 });
  syncFolder(folder);
  return { ...files, created: true };
}
