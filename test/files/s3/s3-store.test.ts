import { randomBytes } from 'node:crypto';
import { PassThrough, Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { S3Store } from '../../../src/files/s3/s3-store.ts';
import { NotInStoreError, type UploadProgress } from '../../../src/files/store.ts';
import { S3_TEST_BOUNDS, newKey, storeFile } from '../store-fixture.ts';
import { BUCKET, S3Server } from '../s3-server.ts';
import { refuseSignature } from '../s3-signature.ts';

const MIB = 1024 * 1024;
const PART = 8 * MIB;

let server: S3Server;
let store: S3Store;

beforeAll(async () => {
  server = await S3Server.start();
});

afterAll(() => server.stop());

beforeEach(() => {
  server.seen.length = 0;
  store = new S3Store(server.config(), { maxFileBytes: 100 * MIB, bounds: S3_TEST_BOUNDS });
});

afterEach(() => store.stop());

describe('a store in a bucket', () => {
  test('puts a small file with one request and gives it back, whole and in part', async () => {
    const key = newKey();
    const bytes = randomBytes(300_000);
    await storeFile(store, key, bytes);
    expect(server.requests).toEqual([`PUT /${BUCKET}/${key}`, `HEAD /${BUCKET}/${key}`]);
    expect((await buffer(await store.read(key, null))).equals(bytes)).toBe(true);
    const range = await buffer(await store.read(key, { start: 1_000, end: 200_000 }));
    expect(range.equals(bytes.subarray(1_000, 200_001))).toBe(true);
    expect(await store.size(key)).toBe(300_000);
  });

  test('puts a large file in parts of one size, and says after each of them how far it is', async () => {
    const key = newKey();
    const bytes = randomBytes(2 * PART + 5_000);
    const told: number[] = [];
    const state = await store.prepareStoreForUpload(key);
    const progress = await store.append(
      key,
      { receivedBytes: 0, state },
      {
        bytes: Readable.from([bytes]),
        onProgress: ({ receivedBytes: received }) => told.push(received),
        isEndOfFile: true,
      },
    );
    expect(progress.receivedBytes).toBe(bytes.length);
    expect(told).toEqual([0, PART, 2 * PART]);
    await store.finish(key, progress);
    expect(server.seen.filter(({ method }) => method === 'PUT').map(({ bytes: size }) => size)).toEqual([
      PART,
      PART,
      5_000,
    ]);
    expect((await buffer(await store.read(key, null))).equals(bytes)).toBe(true);
    expect(server.uploads).toBe(0);
  });

  test('goes on with an upload whose pieces are of any size, and leaves nothing of it behind', async () => {
    const key = newKey();
    const bytes = randomBytes(PART + 3 * MIB);
    let progress: UploadProgress = { receivedBytes: 0, state: await store.prepareStoreForUpload(key) };
    for (let at = 0; at < bytes.length; at += 2 * MIB + 7) {
      const piece = bytes.subarray(at, at + 2 * MIB + 7);
      // The database stores the progress as JSON.
      const kept = JSON.parse(JSON.stringify(progress)) as UploadProgress;
      progress = await store.append(key, kept, { bytes: Readable.from([piece]), onProgress: () => {} });
      expect(progress.receivedBytes).toBe(at + piece.length);
    }
    expect((await store.listUploads(null)).files.map(({ key: found }) => found)).toEqual([key]);
    await store.finish(key, progress);
    await store.finish(key, progress);
    expect((await buffer(await store.read(key, null))).equals(bytes)).toBe(true);
    expect(await allUploads(store)).toEqual([]);
  });

  test('keeps a file without a byte, and a small one that nobody said was the last of', async () => {
    const [empty, small] = [newKey(), newKey()];
    const nothing = { receivedBytes: 0, state: await store.prepareStoreForUpload(empty) };
    await store.finish(empty, nothing);
    await store.finish(empty, nothing);
    expect(await store.size(empty)).toBe(0);
    const bytes = Readable.from([Buffer.from('small')]);
    const begun = { receivedBytes: 0, state: await store.prepareStoreForUpload(small) };
    const progress = await store.append(small, begun, { bytes, onProgress: () => {} });
    await store.finish(small, progress);
    expect((await buffer(await store.read(small, null))).toString()).toBe('small');
    expect(await allUploads(store)).toEqual([]);
  });

  test('keeps what arrived of an upload that is cut, and goes on from there', async () => {
    const key = newKey();
    const bytes = randomBytes(PART + 2 * MIB);
    const source = new PassThrough();
    let reached: UploadProgress = { receivedBytes: 0, state: await store.prepareStoreForUpload(key) };
    const appending = store.append(key, reached, { bytes: source, onProgress: (progress) => (reached = progress) });
    source.write(bytes.subarray(0, PART + MIB), () => setImmediate(() => source.destroy(new Error('gone'))));
    await expect(appending).rejects.toThrow('gone');
    expect(reached.receivedBytes).toBe(PART + MIB);
    const rest = { bytes: Readable.from([bytes.subarray(PART + MIB)]), onProgress: () => {}, isEndOfFile: true };
    await store.finish(key, await store.append(key, reached, rest));
    expect((await buffer(await store.read(key, null))).equals(bytes)).toBe(true);
  });

  test('goes on from what is noted, whatever a request stored behind that which was killed', async () => {
    const key = newKey();
    const bytes = randomBytes(PART + 3 * MIB);
    const add = (from: UploadProgress, start: number, end: number): Promise<UploadProgress> =>
      store.append(key, from, { bytes: Readable.from([bytes.subarray(start, end)]), onProgress: () => {} });
    const noted = await add({ receivedBytes: 0, state: await store.prepareStoreForUpload(key) }, 0, 5 * MIB);
    // The server stores a part and a new remainder, and dies before it records them in the row.
    await add(noted, 5 * MIB, PART + MIB);
    await store.finish(key, await add(noted, 5 * MIB, bytes.length));
    expect((await buffer(await store.read(key, null))).equals(bytes)).toBe(true);
    // The first page lists the stored remainders (bytes of an upload that fill no part yet); after the end of the
    // upload there is none.
    expect((await store.listUploads(null)).files).toEqual([]);
    await store.removeUploadAndFile(key, null);
  });

  test('gives an upload up with all that is of it, one that nobody has noted too', async () => {
    const key = newKey();
    const begun = { receivedBytes: 0, state: await store.prepareStoreForUpload(key) };
    const bytes = Readable.from([randomBytes(PART + MIB)]);
    const { state } = await store.append(key, begun, { bytes, onProgress: () => {} });
    server.leaveUpload(key, 'unnoted');
    expect(server.uploads).toBe(2);
    await store.removeUploadAndFile(key, state);
    await store.removeUploadAndFile(key, null);
    expect(server.uploads).toBe(0);
    expect(await allUploads(store)).toEqual([]);
    expect(await store.size(key)).toBeNull();
  });

  test('drops what is left of an upload and leaves the file', async () => {
    const key = newKey();
    await storeFile(store, key, 'stays');
    server.leaveUpload(key, 'left over');
    await store.removeIncompleteUpload(key);
    expect([server.uploads, await store.size(key)]).toEqual([0, 5]);
  });

  test('refuses to go on with an upload of another store, or of another length', async () => {
    const key = newKey();
    const source = { bytes: Readable.from([]), onProgress: () => {} };
    await expect(store.append(key, { receivedBytes: 5, state: {} }, source)).rejects.toBeInstanceOf(NotInStoreError);
    const state = await store.prepareStoreForUpload(key);
    await expect(store.append(key, { receivedBytes: 5, state }, source)).rejects.toBeInstanceOf(NotInStoreError);
    await expect(store.finish(key, { receivedBytes: 5, state })).rejects.toBeInstanceOf(NotInStoreError);
    await store.removeUploadAndFile(key, {});
  });

  test('says of a file that is not there that it is not, and removes it all the same', async () => {
    const key = newKey();
    await expect(store.read(key, null)).rejects.toBeInstanceOf(NotInStoreError);
    expect(await store.size(key)).toBeNull();
    await store.remove(key);
  });

  test('asks for nothing by a name that is no key', async () => {
    for (const key of ['', '../x', 'a/b', `${newKey()}?acl`]) {
      await expect(store.read(key, null)).rejects.toBeInstanceOf(TypeError);
      await expect(store.remove(key)).rejects.toBeInstanceOf(TypeError);
    }
    expect(server.seen).toEqual([]);
  });

  test('lists files and uploads in pages', async () => {
    const keys = Array.from({ length: 5 }, newKey);
    for (const key of keys) await storeFile(store, key, key);
    for (const [index, key] of keys.entries()) server.leaveUpload(key, `upload-${index}`);
    const { files, next } = await store.list(null);
    const mine = files.filter(({ key }) => keys.includes(key));
    expect(mine.map(({ key }) => key)).toEqual([...keys].sort());
    expect(mine.map(({ size }) => size)).toEqual(Array(5).fill(22));
    expect(next).toBeNull();
    const last = files.at(-2)!;
    expect((await store.list(last.key)).files.map(({ key }) => key)).toEqual([files.at(-1)!.key]);
    expect((await allUploads(store)).sort()).toEqual([...keys].sort());
    for (const key of keys) await store.removeUploadAndFile(key, null);
  });

  test('ends a read whose reader leaves', async () => {
    const key = newKey();
    await storeFile(store, key, randomBytes(4 * MIB));
    const stream = await store.read(key, null);
    stream.destroy();
    await new Promise((resolve) => stream.once('close', resolve));
    expect(await store.size(key)).toBe(4 * MIB);
  });
});

describe('an address of a file in the bucket', () => {
  test('gives it to whoever has it, with the headers that were asked for, and not when it was changed', async () => {
    const giving = new S3Store(server.config({ downloads: 'redirect' }), { maxFileBytes: MIB });
    const key = newKey();
    await storeFile(giving, key, 'a picture');
    const disposition = `attachment; filename="a b+c.txt"; filename*=UTF-8''%C3%A4.txt`;
    const headers = { 'Content-Type': 'text/plain', 'content-disposition': disposition, 'x-other': 'left out' };
    const address = await giving.downloadUrl(key, { forMs: 60_000, headers });
    expect(address).not.toContain('+');
    const answer = await fetch(address!);
    expect([answer.status, await answer.text()]).toEqual([200, 'a picture']);
    expect(answer.headers.get('content-type')).toBe('text/plain');
    expect(answer.headers.get('content-disposition')).toBe(disposition);
    expect((await fetch(address!.replace('text%2Fplain', 'text%2Fhtml'))).status).toBe(403);
    server.nowMs = () => Date.now() + 61_000;
    expect((await fetch(address!)).status).toBe(403);
    server.nowMs = Date.now;
    await giving.stop();
    expect(await store.downloadUrl(key, { forMs: 60_000, headers })).toBeNull();
  });
});

describe('the verifier of these tests', () => {
  test('agrees with the examples in the documentation of the signature', () => {
    const keys = {
      accessKey: 'AKIAIOSFODNN7EXAMPLE',
      secretKey: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY',
      region: 'us-east-1',
    };
    const credential = `${keys.accessKey}/20130524/us-east-1/s3/aws4_request`;
    const nowMs = Date.parse('2013-05-24T00:00:00Z');
    const headers = {
      host: 'examplebucket.s3.amazonaws.com',
      range: 'bytes=0-9',
      'x-amz-content-sha256': 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
      'x-amz-date': '20130524T000000Z',
      authorization:
        `AWS4-HMAC-SHA256 Credential=${credential},SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,` +
        'Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41',
    };
    const request = { method: 'GET', target: '/test.txt', headers, body: Buffer.alloc(0) };
    expect(refuseSignature(request, keys, nowMs)).toBeNull();
    expect(refuseSignature({ ...request, target: '/text.txt' }, keys, nowMs)).toBe('SignatureDoesNotMatch');
    const target =
      `/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=${encodeURIComponent(credential)}` +
      '&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host' +
      '&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404';
    const link = { ...request, target, headers: { host: headers.host } };
    expect(refuseSignature(link, keys, nowMs)).toBeNull();
  });
});

async function allUploads(of: S3Store): Promise<string[]> {
  const keys: string[] = [];
  for (let after: string | null = null; ;) {
    const { files, next } = await of.listUploads(after);
    keys.push(...files.map(({ key }) => key));
    if (next === null) return keys;
    after = next;
  }
}
