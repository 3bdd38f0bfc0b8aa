import { describe, expect, test } from '@jest/globals';
import { createPrivateKey, createPublicKey, generateKeyPairSync, randomBytes, sign, verify } from 'node:crypto';
import { chmodSync, existsSync, readFileSync, readdirSync, rmSync, statSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { loadConfig } from '../../src/config/load.ts';
import { ensureServerKeys } from '../../src/config/keys/server-key-files.ts';
import { Folder, MINIMAL } from './folder.ts';
import { withoutPositions } from './load.ts';

const pem = { type: 'pkcs8', format: 'pem' } as const;
const KEYS = `${MINIMAL}modules.security.server-keys = [\n  { public = "server-key.public.pem"\n    private = "server-key.private.pem" }\n]`;

/** The error for the key pair in a folder, without the folder; null if the pair is accepted. */
function said(folder: Folder): string | null {
  const file = folder.write('server.conf', KEYS);
  try {
    loadConfig(file, { env: {} });
    return null;
  } catch (error) {
    return withoutPositions((error as Error).message, folder.path);
  }
}

describe('a pair that setup makes', () => {
  test('signs, is private, and is accepted', () => {
    using folder = new Folder();
    const files = ensureServerKeys(folder.path);
    expect(files).toEqual({
      created: true,
      private: join(folder.path, 'server-key.private.pem'),
      public: join(folder.path, 'server-key.public.pem'),
    });
    expect(statSync(files.private).mode & 0o777).toBe(0o600);
    expect(statSync(files.public).mode & 0o777).toBe(0o644);
    const signature = sign(null, Buffer.from('x'), createPrivateKey(readFileSync(files.private)));
    expect(verify(null, Buffer.from('x'), createPublicKey(readFileSync(files.public)), signature)).toBe(true);
    const { config, warnings } = loadConfig(folder.write('server.conf', KEYS), { env: {} });
    expect(warnings).toEqual([]);
    expect(config.serverSigningKeys).toEqual([{ public: files.public, private: files.private }]);
  });

  test('is kept by the next run', () => {
    using folder = new Folder();
    const first = ensureServerKeys(join(folder.path, 'new/folder'));
    const content = readFileSync(first.private, 'utf8');
    expect(ensureServerKeys(join(folder.path, 'new/folder'))).toEqual({ ...first, created: false });
    expect(readFileSync(first.private, 'utf8')).toBe(content);
    expect(readdirSync(join(folder.path, 'new/folder')).sort()).toEqual([
      'server-key.private.pem',
      'server-key.public.pem',
    ]);
  });

  test('is completed where a run was cut off after the private key', () => {
    using folder = new Folder();
    const files = ensureServerKeys(folder.path);
    const [privatePem, publicPem] = [readFileSync(files.private, 'utf8'), readFileSync(files.public, 'utf8')];
    rmSync(files.public);
    expect(ensureServerKeys(folder.path).created).toBe(true);
    expect(readFileSync(files.private, 'utf8')).toBe(privatePem);
    expect(readFileSync(files.public, 'utf8')).toBe(publicPem);
  });

  test('is not made over files that are no pair', () => {
    using folder = new Folder();
    folder.write('server-key.public.pem', 'x');
    expect(() => ensureServerKeys(folder.path)).toThrow(
      /server-key\.public\.pem is not a PEM file.*Move both files away/,
    );
    rmSync(join(folder.path, 'server-key.public.pem'));
    folder.write('server-key.private.pem', randomBytes(32));
    expect(() => ensureServerKeys(folder.path)).toThrow(/raw 32-byte key.*Move the file away/);
    expect(existsSync(join(folder.path, 'server-key.public.pem'))).toBe(false);
  });
});

describe('server keys are refused', () => {
  test('where the files are missing, each at its own line', () => {
    using folder = new Folder();
    expect(said(folder)).toBe(
      'server.conf:4: modules.security.server-keys[0].public: server-key.public.pem does not exist\n' +
        'server.conf:5: modules.security.server-keys[0].private: server-key.private.pem does not exist',
    );
  });

  test('as raw bytes of the original system, with the way to new ones', () => {
    using folder = new Folder();
    folder.write('server-key.public.pem', randomBytes(32));
    folder.write('server-key.private.pem', randomBytes(32));
    const sentence =
      'holds a raw 32-byte key as the original system wrote it, Klatch reads PEM: to make a new pair, run "klatch keys generate", or openssl genpkey -algorithm ed25519';
    expect(said(folder)).toBe(
      `server.conf:4: modules.security.server-keys[0].public: server-key.public.pem ${sentence}\n` +
        `server.conf:5: modules.security.server-keys[0].private: server-key.private.pem ${sentence}`,
    );
  });

  test('that do not belong together', () => {
    using folder = new Folder();
    ensureServerKeys(folder.path);
    folder.write('server-key.private.pem', generateKeyPairSync('ed25519').privateKey.export(pem));
    expect(said(folder)).toBe(
      'server.conf:5: modules.security.server-keys[0].private: server-key.private.pem does not belong to the public key in server-key.public.pem',
    );
  });

  test('of another kind, in another form, swapped, locked or damaged', () => {
    using folder = new Folder();
    const { privateKey, publicKey } = generateKeyPairSync('ed25519');
    ensureServerKeys(folder.path);
    const about = (content: string | Buffer): string => {
      folder.write('server-key.private.pem', content);
      return said(folder)!.replace(
        'server.conf:5: modules.security.server-keys[0].private: server-key.private.pem ',
        '',
      );
    };
    const rsa = generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey;
    expect(about(rsa.export(pem))).toMatch(/^holds a key of the type rsa, expected ed25519/);
    expect(about(rsa.export({ type: 'pkcs1', format: 'pem' }))).toBe(
      'holds "RSA PRIVATE KEY", expected "PRIVATE KEY" in its first line',
    );
    expect(about(publicKey.export({ type: 'spki', format: 'pem' }))).toBe(
      'holds "PUBLIC KEY", expected "PRIVATE KEY" in its first line',
    );
    expect(about(privateKey.export({ ...pem, cipher: 'aes-256-cbc', passphrase: 'x' }))).toMatch(
      /^is locked with a passphrase/,
    );
    expect(about(privateKey.export({ type: 'pkcs8', format: 'der' }))).toMatch(/^is not a PEM file/);
    expect(about('-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n')).toMatch(
      /^is a damaged PEM file \(ERR_/,
    );
    expect(about('')).toMatch(/^is not a PEM file/);
    folder.write('server-key.private.pem', '');
    truncateSync(join(folder.path, 'server-key.private.pem'), 100_000);
    expect(said(folder)).toContain('is too large for a key');
  });

  test('in a folder', () => {
    using folder = new Folder();
    folder.write('server-key.public.pem/x', '');
    folder.write('server-key.private.pem/x', '');
    expect(said(folder)).toContain('server-key.public.pem is not a file');
  });
});

describe('server keys give a warning', () => {
  test('where everybody can read the private one', () => {
    using folder = new Folder();
    const files = ensureServerKeys(folder.path);
    chmodSync(files.private, 0o644);
    const file = folder.write('server.conf', KEYS);
    expect(loadConfig(file, { env: {} }).warnings).toEqual([
      `${file}:5:15: modules.security.server-keys[0].private: ${files.private} can be read by every user of this machine: chmod o-r`,
    ]);
  });

  test('where there are more than sign', () => {
    using folder = new Folder();
    ensureServerKeys(folder.path);
    const pair = '{ public = server-key.public.pem, private = server-key.private.pem }';
    const file = folder.write(
      'server.conf',
      `${MINIMAL}modules.security.server-keys = [${Array(4).fill(pair).join(', ')}]`,
    );
    expect(loadConfig(file, { env: {} }).warnings).toEqual([
      `${file}:3:254: modules.security.server-keys[3]: only the first 3 pairs sign`,
    ]);
  });
});
