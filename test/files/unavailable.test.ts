import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { S3Store } from '../../src/files/s3/s3-store.ts';
import { requestBytes, Wire } from '../http/wire.ts';
import { recordingLog } from '../support/recording-log.ts';
import { postJson, TestServer, type TestGroup } from '../support/server.ts';
import { call, download, tokenOf, upload } from './over-http.ts';
import { BUCKET, S3Server } from './s3-server.ts';

describe('while the folder of files is away', () => {
  let parent: string;
  let server: TestServer;
  let group: TestGroup;
  let token: string;

  beforeAll(async () => {
    parent = await mkdtemp(join(tmpdir(), 'klatch-away-'));
    server = await TestServer.start({ files: { localFilesFolder: join(parent, 'disk', 'files') } });
    group = await server.createGroup();
    token = await tokenOf(server, 'anna');
  });
  afterAll(async () => {
    await server.stop();
    await rm(parent, { recursive: true });
  });

  test('the server starts, posts are taken, and uploads are told to come again', async () => {
    const refused = await upload(server, { token, bytes: Buffer.from('x') });
    expect([refused.status, refused.body.code]).toEqual([503, 'storage_unavailable']);
    expect(refused.headers.get('retry-after')).not.toBeNull();
    expect(refused.body.message).not.toContain(parent);
    expect((await postJson(group.webhook, { text: 'still here' })).status).toBe(200);
  });
});

describe('a server whose files are in a bucket', () => {
  let bucket: S3Server;
  let server: TestServer;
  let group: TestGroup;
  let token: string;
  const lines: string[] = [];

  beforeAll(async () => {
    bucket = await S3Server.start();
    const log = recordingLog(lines);
    server = await TestServer.start({ files: { s3: bucket.config() } }, { log });
    group = await server.createGroup();
    token = await tokenOf(server, 'anna');
  });
  afterEach(() => {
    bucket.interfere = () => undefined;
  });
  afterAll(async () => {
    await server.stop();
    await bucket.stop();
  });

  test('stores, gives and removes files there', async () => {
    const bytes = Buffer.alloc(9 * 1024 * 1024, 'klatch');
    const stored = await upload(server, { token, bytes });
    expect(stored.status).toBe(201);
    const id = stored.body.id as string;
    const again = await download(server, { token, id });
    expect(Buffer.isBuffer(again) && again.equals(bytes)).toBe(true);
    expect((await server.operate<{ found: unknown[] }>('files.check', {})).found).toEqual([]);
    expect((await call(server, { operation: 'files.remove', input: { file: id }, token })).status).toBe(200);
    expect(await download(server, { token, id })).toBe(404);
  });

  test('takes posts while the bucket is away, and the log says what is wrong without the secret', async () => {
    bucket.interfere = (_, response) => {
      response.destroy();
      return 'taken';
    };
    const refused = await upload(server, { token, bytes: Buffer.from('x') });
    expect([refused.status, refused.body.code]).toEqual([503, 'storage_unavailable']);
    expect((await postJson(group.webhook, { text: 'still here' })).status).toBe(200);
    bucket.interfere = () => undefined;
    expect((await upload(server, { token, bytes: Buffer.from('x') })).status).toBe(201);
    const { secretKey } = bucket.config();
    expect(lines.join('\n')).not.toContain(secretKey);
  });

  test.each([
    ['in one piece', '/v1/files?name=a', null],
    ['in parts', '/v1/files/uploads', '10'],
  ])('keep nothing of an upload %s that another node removes while it is written', async (_, path, length) => {
    const session = { authorization: `Bearer ${token}`, 'tus-resumable': '1.0.0' };
    const wire = await Wire.open(server.port);
    const announced = { ...session, 'content-length': '10', expect: '100-continue' };
    if (length === null) wire.write(requestBytes({ path, headers: announced }));
    else {
      const begun = await fetch(`${server.url}${path}`, {
        method: 'POST',
        headers: { ...session, 'upload-length': length },
      });
      const { pathname } = new URL(begun.headers.get('location')!, begun.url);
      const headers = { ...announced, 'content-type': 'application/offset+octet-stream', 'upload-offset': '0' };
      wire.write(requestBytes({ method: 'PATCH', path: pathname, headers }));
    }
    expect((await wire.response()).status).toBe(100);
    const [row] = await server.database.query(
      (sql) => sql<{ id: string }[]>`delete from file where state = 'uploading' returning id`,
    );
    wire.write('0123456789');
    expect((await wire.response()).status).toBeGreaterThanOrEqual(400);
    wire.close();
    const store = new S3Store(bucket.config(), { maxFileBytes: 1_000_000 });
    expect(bucket.requests).toContain(`PUT /${BUCKET}/${row!.id}`);
    expect(await store.size(row!.id)).toBeNull();
    expect((await store.listUploads(null)).files.map(({ key }) => key)).not.toContain(row!.id);
    await store.stop();
  });
});
