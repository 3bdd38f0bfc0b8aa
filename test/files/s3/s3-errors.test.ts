import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { once } from 'node:events';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import type { S3Config } from '../../../src/config/services.ts';
import { S3Store } from '../../../src/files/s3/s3-store.ts';
import { NotInStoreError, StoreUnavailableError, StoreFullError } from '../../../src/files/store.ts';
import { answerError, KEYS, S3Server } from '../s3-server.ts';
import { newKey, S3_TEST_BOUNDS, storeFile } from '../store-fixture.ts';

const MIB = 1024 * 1024;

let server: S3Server;
const stores: S3Store[] = [];

function storeWith(changes: Partial<S3Config> = {}, bounds = S3_TEST_BOUNDS): S3Store {
  const store = new S3Store(server.config(changes), { maxFileBytes: 100 * MIB, bounds });
  stores.push(store);
  return store;
}

beforeAll(async () => {
  server = await S3Server.start();
});

afterAll(() => server.stop());

beforeEach(() => {
  server.seen.length = 0;
});

afterEach(async () => {
  server.interfere = () => undefined;
  server.nowMs = Date.now;
  for (const store of stores.splice(0)) await store.stop();
});

describe('a bucket that refuses says which key of the configuration it is about', () => {
  const mistakes: [string, Partial<S3Config>, RegExp][] = [
    ['the access key', { accessKey: 'AKIAWRONG' }, /services\.aws\.s3\.access-key: .*\(403 InvalidAccessKeyId\)/],
    ['the secret key', { secretKey: 'wrong' }, /services\.aws\.s3\.secret-key: .*\(403 SignatureDoesNotMatch\)/],
    ['the region', { region: 'mars-1' }, /services\.aws\.s3\.region: .*\(403 AuthorizationHeaderMalformed\)/],
    ['the bucket', { bucket: 'not-there' }, /services\.aws\.s3\.default-bucket: .*\(404 NoSuchBucket\)/],
  ];
  test.each(mistakes)('%s', async (_, changes, sentence) => {
    const store = storeWith(changes);
    const failure = await store.checkUsable().catch((error: unknown) => error as Error);
    expect(failure).toBeInstanceOf(StoreUnavailableError);
    const { message } = failure as Error;
    expect(message).toMatch(sentence);
    for (const value of [KEYS.secretKey, 'AKIAWRONG', 'wrong']) expect(message.includes(value)).toBe(false);
    // The store retries none of these failures.
    expect(server.seen.length).toBe(1);
  });

  test('the clock', async () => {
    server.nowMs = () => Date.now() + 3_600_000;
    await expect(storeWith().checkUsable()).rejects.toThrow(/the clock of this machine .*RequestTimeTooSkewed/);
  });

  test('rights that are missing, said without a document too', async () => {
    server.interfere = (_, response) => answerError(response, 403, 'AccessDenied');
    await expect(storeWith().checkUsable()).rejects.toThrow(/services\.aws\.s3\.access-key: its user may not/);
    server.interfere = (_, response) => (response.writeHead(403).end(), 'taken');
    await expect(storeWith().size(newKey())).rejects.toThrow(/services\.aws\.s3\.access-key: its user may not/);
  });

  test('room that is missing', async () => {
    for (const [status, code] of [
      [403, 'QuotaExceeded'],
      [507, 'XMinioStorageFull'],
    ] as const) {
      server.interfere = (_, response) => answerError(response, status, code);
      await expect(storeFile(storeWith(), newKey(), 'x')).rejects.toBeInstanceOf(StoreFullError);
    }
  });
});

describe('a store that is away', () => {
  test('is asked again, and what comes late is as good', async () => {
    const key = newKey();
    let refused = 0;
    server.interfere = ({ method }, response) => {
      if (method !== 'PUT' || refused >= 2) return undefined;
      refused += 1;
      if (refused === 1) return answerError(response, 503, 'SlowDown');
      response.destroy();
      return 'taken';
    };
    await storeFile(storeWith(), key, 'late');
    expect(await storeWith().size(key)).toBe(4);
    expect(refused).toBe(2);
  });

  test('is asked so many times, and not for ever', async () => {
    server.interfere = (_, response) => answerError(response, 500, 'InternalError');
    await expect(storeFile(storeWith(), newKey(), 'x')).rejects.toBeInstanceOf(StoreUnavailableError);
    expect(server.seen.length).toBe(S3_TEST_BOUNDS.retryDelaysMs.length + 1);
  });

  test('is not waited for longer than its time', async () => {
    server.interfere = () => 'taken';
    const bounds = { ...S3_TEST_BOUNDS, responseTimeoutMs: 300, retryDelaysMs: [10] };
    const failure = await storeWith({}, bounds)
      .checkUsable()
      .catch((error: unknown) => error as Error);
    expect(failure).toBeInstanceOf(StoreUnavailableError);
    expect((failure as Error).message).toMatch(/cannot be reached at 127\.0\.0\.1:\d+ \(TIMEOUT\)/);
    expect(server.seen.length).toBe(2);
  });

  test('is told by its host when nobody listens there', async () => {
    const probe = createServer().listen(0, '127.0.0.1');
    await once(probe, 'listening');
    const { port } = probe.address() as AddressInfo;
    probe.close();
    await once(probe, 'close');
    const store = storeWith({ s3Endpoint: `http://127.0.0.1:${port}/base` });
    await expect(store.checkUsable()).rejects.toThrow(
      `the bucket klatch-files cannot be reached at 127.0.0.1:${port} (ECONNREFUSED): look at services.aws.s3.endpoint`,
    );
  });

  test('ends calls under way when the server stops', async () => {
    server.interfere = () => 'taken';
    const store = storeWith();
    const checking = store.checkUsable().catch((error: unknown) => error as Error);
    while (server.seen.length === 0) await new Promise((resolve) => setImmediate(resolve));
    await store.stop();
    await store.stop();
    expect(await checking).toBeInstanceOf(StoreUnavailableError);
  });
});

describe('a store that breaks off or talks nonsense', () => {
  test('fails a read in the middle, as a store that is away', async () => {
    const key = newKey();
    const store = storeWith();
    await storeFile(store, key, randomBytes(MIB));
    server.interfere = ({ method }, response) => {
      if (method !== 'GET') return undefined;
      response.writeHead(200, { 'content-length': MIB });
      response.write(randomBytes(1_000), () => response.destroy());
      return 'taken';
    };
    await expect(buffer(await store.read(key, null))).rejects.toBeInstanceOf(StoreUnavailableError);
  });

  test('fails a read that gets nothing more', async () => {
    server.interfere = (_, response) => {
      response.writeHead(200, { 'content-length': MIB });
      response.write('x');
      return 'taken';
    };
    const store = storeWith({}, { ...S3_TEST_BOUNDS, responseBodyStallTimeoutMs: 1_000 });
    await expect(buffer(await store.read(newKey(), null))).rejects.toBeInstanceOf(StoreUnavailableError);
  });

  test('does not pass off a whole file as a part of it', async () => {
    const key = newKey();
    server.interfere = ({ method }, response) => (method === 'GET' ? (response.end('the whole'), 'taken') : undefined);
    await expect(storeWith().read(key, { start: 4, end: 8 })).rejects.toBeInstanceOf(StoreUnavailableError);
  });

  test.each([
    ['no XML', 'hello'],
    ['another document', '<html><body>Welcome to nginx</body></html>'],
    [
      'an upload without a name',
      '<InitiateMultipartUploadResult><UploadId></UploadId></InitiateMultipartUploadResult>',
    ],
  ])('is told apart from one: %s', async (_, answer) => {
    server.interfere = ({ target }, response) =>
      target.includes('uploads') ? (response.end(answer), 'taken') : undefined;
    const bytes = Readable.from([randomBytes(9 * MIB)]);
    const store = storeWith();
    const key = newKey();
    const progress = { receivedBytes: 0, state: await store.prepareStoreForUpload(key) };
    await expect(store.append(key, progress, { bytes, onProgress: () => {} })).rejects.toThrow(/no S3 store/);
  });

  test('does not list in circles, and reads no endless document', async () => {
    const entry = `<Contents><Key>${newKey()}</Key><Size>1</Size><LastModified>2026-11-21T00:00:00Z</LastModified></Contents>`;
    server.interfere = (_, response) => {
      response.end(`<ListBucketResult><IsTruncated>true</IsTruncated>${entry}</ListBucketResult>`);
      return 'taken';
    };
    const store = storeWith();
    const { next } = await store.list(null);
    await expect(store.list(next)).rejects.toThrow(/no S3 store/);
    server.interfere = (_, response) => {
      const chunk = Buffer.alloc(MIB, 'x');
      const write = (): void => void (response.destroyed ? undefined : response.write(chunk, write));
      write();
      return 'taken';
    };
    await expect(store.list(null)).rejects.toBeInstanceOf(StoreUnavailableError);
  });

  test('says 200 and fails all the same when it makes one file of the parts', async () => {
    server.interfere = ({ method, target }, response) =>
      method === 'POST' && target.includes('uploadId=') ? answerError(response, 200, 'InternalError') : undefined;
    await expect(storeFile(storeWith(), newKey(), randomBytes(9 * MIB))).rejects.toThrow(/200 InternalError/);
  });

  test('ends an upload whose answer was lost, since the file is there', async () => {
    const key = newKey();
    let isLost = false;
    server.interfere = ({ method, target }, response) => {
      if (method !== 'POST' || !target.includes('uploadId=') || isLost) return undefined;
      isLost = true;
      response.end = () => response.destroy();
      return undefined;
    };
    await storeFile(storeWith(), key, randomBytes(9 * MIB));
    expect(isLost).toBe(true);
    expect(await storeWith().size(key)).toBe(9 * MIB);
  });

  test('that has dropped an upload is not asked to go on with it', async () => {
    const store = storeWith();
    const key = newKey();
    const begun = { receivedBytes: 0, state: await store.prepareStoreForUpload(key) };
    const progress = await store.append(key, begun, {
      bytes: Readable.from([randomBytes(9 * MIB)]),
      onProgress: () => {},
    });
    await store.removeUploadAndFile(key, progress.state);
    const rest = { bytes: Readable.from([Buffer.from('x')]), onProgress: () => {} };
    await expect(store.append(key, progress, rest)).rejects.toBeInstanceOf(NotInStoreError);
    await expect(store.finish(key, progress)).rejects.toBeInstanceOf(NotInStoreError);
  });
});
