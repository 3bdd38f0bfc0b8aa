import { randomBytes } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { LocalStore } from '../../src/files/local-store.ts';
import { S3Store } from '../../src/files/s3/s3-store.ts';
import { BUCKET, KEYS, S3Server } from '../files/s3-server.ts';
import { newKey, S3_TEST_BOUNDS, storeFile } from '../files/store-fixture.ts';
import { mustRun, run } from './support/run.ts';

const MIB = 1024 * 1024;
/** The size of a file in bytes that the store uploads in three parts of at most 8 MiB. */
const THREE_PARTS = 16 * MIB + 5_000;
const PARTS_OF_5 = ['--multipart-chunk-size-mb=5'];
/** The exit code of s3cmd, from sysexits.h, if the store refuses a request. */
const EX_ACCESSDENIED = 77;
const FROM_DOCUMENT = /^for folder in .*s3cmd put .*$/m;
const BUCKET_URL = `s3://${BUCKET}`;

let home: string;
let server: S3Server;
let store: S3Store;

/**
 * Writes a configuration for s3cmd, which ignores that of the account. It signs with Signature Version 4, or not at
 * all.
 */
async function configure(secretKey: string): Promise<void> {
  const { host } = new URL(server.config().s3Endpoint);
  const lines = [
    '[default]',
    `access_key = ${KEYS.accessKey}`,
    `secret_key = ${secretKey}`,
    `bucket_location = ${KEYS.region}`,
    `host_base = ${host}`,
    `host_bucket = ${host}`,
    'use_https = False',
    'signature_v2 = False',
  ];
  await writeFile(join(home, '.s3cfg'), `${lines.join('\n')}\n`, { mode: 0o600 });
}

const environment = (): Record<string, string> => ({ PATH: '/usr/bin:/bin', HOME: home, LC_ALL: 'C.UTF-8' });

const s3cmd = (...args: string[]): Promise<string> =>
  mustRun('s3cmd', ['--no-progress', ...args], { env: environment() });

/** By key: the sizes of the files in the bucket, as s3cmd lists them. */
async function listed(): Promise<Map<string, number>> {
  const lines = (await s3cmd('ls', '--recursive', BUCKET_URL)).trimEnd().split('\n').filter(Boolean);
  const found = lines.map((line) => {
    const [, size, key] = /^\S+ \S+ +(\d+) +s3:\/\/[^/]+\/(.*)$/.exec(line) ?? [];
    if (key === undefined) throw new Error(`not a line of a listing: ${line}`);
    return [key, Number(size)] as const;
  });
  return new Map(found);
}

async function getByS3cmd(key: string): Promise<Buffer> {
  const path = join(home, 'got');
  await s3cmd('get', '--force', `${BUCKET_URL}/${key}`, path);
  return readFile(path);
}

async function putByS3cmd(key: string, bytes: Buffer): Promise<void> {
  const path = join(home, 'to-put');
  await writeFile(path, bytes);
  await s3cmd('put', ...PARTS_OF_5, path, `${BUCKET_URL}/${key}`);
}

/** The sizes of the bodies of all PUT requests, in their order. */
const puts = (): number[] => server.seen.filter(({ method }) => method === 'PUT').map(({ bytes }) => bytes);

beforeAll(async () => {
  server = await S3Server.start();
});

afterAll(() => server?.stop());

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'klatch-s3cmd-'));
  await configure(KEYS.secretKey);
  store = new S3Store(server.config(), { maxFileBytes: 100 * MIB, bounds: S3_TEST_BOUNDS });
  server.seen.length = 0;
});

afterEach(async () => {
  await store.stop();
  await rm(home, { recursive: true, force: true });
});

describe('in a bucket that it shares with s3cmd', () => {
  test('what the store has put is listed and read by s3cmd, byte for byte', async () => {
    const [small, large] = [newKey(), newKey()];
    const [few, many] = [randomBytes(1_234), randomBytes(THREE_PARTS)];
    await storeFile(store, small, few);
    await storeFile(store, large, many);
    expect(puts()).toEqual([1_234, 8 * MIB, 8 * MIB, 5_000]);
    expect(await listed()).toEqual(
      new Map([
        [small, few.length],
        [large, many.length],
      ]),
    );
    expect((await getByS3cmd(small)).equals(few)).toBe(true);
    expect((await getByS3cmd(large)).equals(many)).toBe(true);
    for (const key of [small, large]) await store.remove(key);
    expect(await listed()).toEqual(new Map());
  });

  test('what s3cmd has put, whole or in parts, is listed, read and removed by the store', async () => {
    const [small, large] = [newKey(), newKey()];
    const [few, many] = [randomBytes(4_321), randomBytes(11 * MIB)];
    await putByS3cmd(small, few);
    await putByS3cmd(large, many);
    await putByS3cmd('a name of somebody else.txt', few);
    expect(puts()).toEqual([4_321, 5 * MIB, 5 * MIB, MIB, 4_321]);
    const { files } = await store.list(null);
    expect(new Map(files.map(({ key, size }) => [key, size]))).toEqual(
      new Map([
        [small, few.length],
        [large, many.length],
      ]),
    );
    expect((await buffer(await store.read(small, null))).equals(few)).toBe(true);
    expect((await buffer(await store.read(large, null))).equals(many)).toBe(true);
    const range = { start: 5 * MIB - 10, end: 5 * MIB + 10 };
    expect((await buffer(await store.read(large, range))).equals(many.subarray(range.start, range.end + 1))).toBe(true);
    for (const key of [small, large]) await store.remove(key);
    expect([...(await listed()).keys()]).toEqual(['a name of somebody else.txt']);
    await s3cmd('del', `${BUCKET_URL}/a name of somebody else.txt`);
  });

  test('a folder gets into it by the line in docs/files.md, and its files back', async () => {
    const location = join(home, 'files');
    const folder = new LocalStore(location);
    await folder.checkUsable();
    const files = new Map(Array.from({ length: 3 }, (_, index) => [newKey(), randomBytes(1_000 * (index + 1))]));
    for (const [key, bytes] of files) await storeFile(folder, key, bytes);
    await folder.stop();
    const page = await readFile(join(import.meta.dirname, '../../docs/files.md'), 'utf8');
    const line = FROM_DOCUMENT.exec(page)![0].replace('/var/lib/klatch/files', location);
    expect(line).toContain(`${location}/??; do`);
    await mustRun('/bin/sh', ['-ec', line], { env: environment() });
    for (const [key, bytes] of files) {
      expect((await buffer(await store.read(key, null))).equals(bytes)).toBe(true);
      expect((await getByS3cmd(key)).equals(bytes)).toBe(true);
      await store.remove(key);
    }
  });
});

describe("s3cmd's signatures", () => {
  test('are verified as well: with another secret key nothing is given or taken', async () => {
    const key = newKey();
    await storeFile(store, key, 'mine');
    await configure('another secret key');
    const path = join(home, 'to-put');
    await writeFile(path, 'not mine');
    const attempts: string[][] = [
      ['ls', BUCKET_URL],
      ['get', '--force', `${BUCKET_URL}/${key}`, join(home, 'got')],
      ['put', path, `${BUCKET_URL}/${key}`],
    ];
    for (const attempt of attempts) {
      const { code, stderr } = await run('s3cmd', ['--no-progress', ...attempt], { env: environment() });
      expect([attempt[0], code]).toEqual([attempt[0], EX_ACCESSDENIED]);
      expect(stderr).toContain('S3 error: 403');
    }
    expect(server.seen.every(({ headers }) => headers.authorization!.startsWith('AWS4-HMAC-SHA256 '))).toBe(true);
    expect((await buffer(await store.read(key, null))).toString()).toBe('mine');
    await store.remove(key);
  });
});
