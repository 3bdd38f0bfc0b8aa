import { randomBytes } from 'node:crypto';
import dns from 'node:dns';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, jest, test } from '@jest/globals';
import type { S3Config } from '../../src/config/services.ts';
import { S3RequestSigner } from '../../src/files/s3/s3-signing.ts';
import { S3Store } from '../../src/files/s3/s3-store.ts';
import { BUCKET, KEYS, S3Server } from './s3-server.ts';
import { refuseSignature } from './s3-signature.ts';
import { newKey, S3_TEST_BOUNDS, storeFile } from './store-fixture.ts';

const MIB = 1024 * 1024;
const PART = 8 * MIB;
const DOMAIN = 's3.klatch.test';

let server: S3Server;

/** A configuration with the address of the S3 server, under a name that only the look-ups of this file resolve. */
function config(changes: Partial<S3Config> = {}): S3Config {
  const { port } = new URL(server.config().s3Endpoint);
  return server.config({ s3Endpoint: `http://${DOMAIN}:${port}`, pathStyle: false, ...changes });
}

/** Replaces the name server: these names have the address 127.0.0.1, and no other name exists. */
function resolveOnly(...names: string[]): void {
  const lookup = (host: string, options: dns.LookupOptions, done: (...answer: unknown[]) => void): void => {
    const isKnown = names.includes(host);
    const missing = isKnown ? null : Object.assign(new Error(`no address of ${host}`), { code: 'ENOTFOUND' });
    const address = { address: '127.0.0.1', family: 4 };
    process.nextTick(() => (options.all === true ? done(missing, [address]) : done(missing, '127.0.0.1', 4)));
  };
  jest.spyOn(dns, 'lookup').mockImplementation(lookup as typeof dns.lookup);
}

beforeAll(async () => {
  server = await S3Server.start();
});

afterAll(() => server?.stop());

beforeEach(() => {
  server.seen.length = 0;
  // The domain itself does not exist, so a request to it instead of to the host of the bucket fails.
  resolveOnly(`${BUCKET}.${DOMAIN}`);
});

afterEach(() => {
  jest.restoreAllMocks();
});

describe('a bucket that is a host', () => {
  let store: S3Store;

  beforeEach(() => {
    store = new S3Store(config({ downloads: 'redirect' }), { maxFileBytes: 100 * MIB, bounds: S3_TEST_BOUNDS });
  });

  afterEach(() => store.stop());

  test('is asked by its name, in no request by a path, and takes every signature', async () => {
    const [small, large, dropped] = [newKey(), newKey(), newKey()];
    const [few, many] = [randomBytes(1_000), randomBytes(PART + 1_000)];
    await store.checkUsable();
    await storeFile(store, small, few);
    await storeFile(store, large, many);
    expect((await buffer(await store.read(small, null))).equals(few)).toBe(true);
    expect(
      (await buffer(await store.read(large, { start: PART - 1, end: PART }))).equals(many.subarray(PART - 1, PART + 1)),
    ).toBe(true);
    expect((await store.list(null)).files.map(({ key }) => key).sort()).toEqual([small, large].sort());
    const begun = { receivedBytes: 0, state: await store.prepareStoreForUpload(dropped) };
    const source = { bytes: Readable.from([randomBytes(PART + 1)]), onProgress: () => {} };
    const { state } = await store.append(dropped, begun, source);
    expect((await store.listUploads(null)).files.map(({ key }) => key)).toEqual([dropped]);
    await store.removeUploadAndFile(dropped, state);
    for (const key of [small, large]) await store.remove(key);
    expect((await store.list(null)).files).toEqual([]);
    const { port } = new URL(server.config().s3Endpoint);
    expect(new Set(server.seen.map(({ headers }) => headers.host))).toEqual(new Set([`${BUCKET}.${DOMAIN}:${port}`]));
    expect(server.requests.filter((request) => request.includes(BUCKET))).toEqual([]);
    expect(server.requests).toContain(`PUT /${small}`);
  });

  test('gives a file to whoever has its signed address, and not for another bucket', async () => {
    const key = newKey();
    await storeFile(store, key, 'a picture');
    const address = new URL((await store.downloadUrl(key, { forMs: 60_000, headers: {} }))!);
    expect([address.hostname, address.pathname]).toEqual([`${BUCKET}.${DOMAIN}`, `/${key}`]);
    const answer = await fetch(address);
    expect([answer.status, await answer.text()]).toEqual([200, 'a picture']);
    resolveOnly(`${BUCKET}.${DOMAIN}`, `${BUCKET}.other.test`);
    address.hostname = `${BUCKET}.other.test`;
    expect((await fetch(address)).status).toBe(403);
    await store.remove(key);
  });
});

describe('the address of a bucket', () => {
  const addresses: [string, Partial<S3Config>, string, string][] = [
    ["at Amazon's general address", { region: 'us-east-1' }, `${BUCKET}.s3.amazonaws.com`, '/'],
    ['in a region of Amazon', { region: 'eu-central-1' }, `${BUCKET}.s3.eu-central-1.amazonaws.com`, '/'],
    [
      'in a region of Amazon, as a path',
      { region: 'eu-central-1', pathStyle: true },
      's3.eu-central-1.amazonaws.com',
      `/${BUCKET}/`,
    ],
    [
      'at an endpoint with a port and a path',
      { s3Endpoint: 'http://store.test:9000/s3/' },
      `${BUCKET}.store.test:9000`,
      '/s3/',
    ],
    [
      'at an endpoint with a port and a path, as a path',
      { s3Endpoint: 'http://store.test:9000/s3', pathStyle: true },
      'store.test:9000',
      `/s3/${BUCKET}/`,
    ],
  ];
  test.each(addresses)('%s is what is signed', async (_, changes, host, path) => {
    const s3: S3Config = { ...config(), s3Endpoint: 'https://s3.amazonaws.com', ...changes };
    const keys = { ...KEYS, region: s3.region };
    const signing = new S3RequestSigner(s3);
    const key = newKey();
    const { url, headers } = await signing.sign({ method: 'GET', key, query: { 'list-type': '2' } });
    const { host: asked, pathname, search } = new URL(url);
    expect([asked, pathname]).toEqual([host, `${path}${key}`]);
    // The signer sets no host header: the client sends the host of the URL.
    const request = { method: 'GET', target: pathname + search, headers: { ...headers, host }, body: Buffer.alloc(0) };
    expect(refuseSignature(request, keys, Date.now())).toBeNull();
    const elsewhere = { ...request, headers: { ...request.headers, host: `other.${host}` } };
    expect(refuseSignature(elsewhere, keys, Date.now())).toBe('SignatureDoesNotMatch');
  });
});
