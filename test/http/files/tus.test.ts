import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Upload, type UploadOptions } from 'tus-js-client';
import { callAs } from '../../support/call.ts';
import { eventually } from '../../support/eventually.ts';
import { createPerson, type TestPerson } from '../../support/people.ts';
import { TestServer } from '../../support/server.ts';
import { attach, bearer, noise, rowsOf, usageOf } from '../files-fixture.ts';
import { requestBytes, Wire } from '../wire.ts';

const KIB = 1024;
const PART = 'application/offset+octet-stream';

let server: TestServer;
let anna: TestPerson;
beforeAll(async () => {
  server = await TestServer.start({ limits: { fileBytes: 4 * KIB * KIB, storagePerUserBytes: 40 * KIB * KIB } });
  anna = await createPerson(server, 'anna');
});
afterAll(() => server.stop());

type Headers = Record<string, string>;
const tus = (method: string, path: string, headers: Headers = {}, body?: string | Buffer) =>
  fetch(new URL(path, server.url), {
    method,
    headers: { 'tus-resumable': '1.0.0', ...bearer(anna), ...headers },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : new Uint8Array(body) }),
  });
const create = async (size: number, headers: Headers = {}): Promise<string> => {
  const response = await tus('POST', '/v1/files/uploads', { 'upload-length': String(size), ...headers });
  if (response.status !== 201) throw new Error(`${response.status}: ${await response.text()}`);
  return new URL(response.headers.get('location')!, response.url).pathname;
};
const patch = (path: string, offset: number, body: string | Buffer, headers: Headers = {}) =>
  tus('PATCH', path, { 'content-type': PART, 'upload-offset': String(offset), ...headers }, body);
const head = async (path: string) => {
  const response = await tus('HEAD', path);
  return [response.status, response.headers.get('upload-offset'), response.headers.get('upload-length')];
};
const content = async (path: string): Promise<Buffer> => {
  const response = await fetch(`${server.url}/v1/files/${path.split('/').at(-1)}`, { headers: bearer(anna) });
  expect(response.status).toBe(200);
  return Buffer.from(await response.arrayBuffer());
};
const code = async (response: Response): Promise<unknown> => [
  response.status,
  ((await response.json()) as { code: string }).code,
];

/** Opens a connection on which a part (PATCH) of an upload has begun, and sends the first bytes of the part. */
async function beginPart(path: string, offset: number, announced: number, sent: string | Buffer): Promise<Wire> {
  const wire = await Wire.open(server.port);
  const headers = {
    'tus-resumable': '1.0.0',
    'content-type': PART,
    'upload-offset': String(offset),
    'content-length': String(announced),
    expect: '100-continue',
    ...bearer(anna),
  };
  wire.write(requestBytes({ method: 'PATCH', path, headers }));
  // From now on this request is the one that continues the upload.
  expect((await wire.response()).status).toBe(100);
  wire.write(sent);
  return wire;
}

describe('an upload in parts', () => {
  test('is begun, goes on where it is, and is a file in the end', async () => {
    const bytes = noise(300 * KIB);
    const name = Buffer.from('../Bericht.pdf').toString('base64');
    const path = await create(bytes.length, { 'upload-metadata': `filetype YQ==,filename ${name},empty` });
    expect(await head(path)).toEqual([200, '0', String(bytes.length)]);
    const first = await patch(path, 0, bytes.subarray(0, 100 * KIB));
    expect([first.status, first.headers.get('upload-offset')]).toEqual([204, String(100 * KIB)]);
    const left = Date.parse(first.headers.get('upload-expires')!) - Date.now();
    expect([left > 23 * 3_600_000, left <= 24 * 3_600_000]).toEqual([true, true]);
    expect(await head(path)).toEqual([200, String(100 * KIB), String(bytes.length)]);
    const last = await patch(path, 100 * KIB, bytes.subarray(100 * KIB));
    expect([last.status, last.headers.get('upload-offset'), last.headers.get('upload-expires')]).toEqual([
      204,
      String(bytes.length),
      null,
    ]);
    expect((await content(path)).equals(bytes)).toBe(true);
    const { files } = await callAs(server, anna, 'files.list', { limit: 1 });
    expect(files[0]).toMatchObject({ name: 'Bericht.pdf', size: bytes.length, complete: true });
    expect(await head(path)).toEqual([200, String(bytes.length), String(bytes.length)]);
  });

  test('may bring its first bytes as it is begun, or nothing at all', async () => {
    const response = await tus('POST', '/v1/files/uploads/', { 'upload-length': '5', 'content-type': PART }, 'hello');
    expect([response.status, response.headers.get('upload-offset')]).toEqual([201, '5']);
    expect((await content(new URL(response.headers.get('location')!, response.url).pathname)).toString()).toBe('hello');
    expect((await content(await create(0))).length).toBe(0);
  });

  test('is given a type by its content, also where its first part is short', async () => {
    const png = Buffer.from('89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489', 'hex');
    const path = await create(png.length);
    await patch(path, 0, png.subarray(0, 3));
    await patch(path, 3, png.subarray(3));
    const { files } = await callAs(server, anna, 'files.list', { limit: 1 });
    expect(files[0]).toMatchObject({ type: 'image/png', name: 'file' });
  });

  test('does not go on from another place than where it is', async () => {
    const path = await create(10);
    expect((await patch(path, 0, '01234')).status).toBe(204);
    for (const offset of [0, 4, 6, 10])
      expect(await code(await patch(path, offset, 'x'))).toEqual([409, 'upload_conflict']);
    expect(await head(path)).toEqual([200, '5', '10']);
    expect((await patch(path, 5, '56789')).status).toBe(204);
    expect(await code(await patch(path, 5, '56789'))).toEqual([409, 'upload_conflict']);
    expect((await content(path)).toString()).toBe('0123456789');
  });

  test('does not get longer than it was announced', async () => {
    const path = await create(5);
    expect(await code(await patch(path, 0, '012345'))).toEqual([413, 'too_large']);
    const chunked = await fetch(new URL(path, server.url), {
      method: 'PATCH',
      headers: { 'tus-resumable': '1.0.0', ...bearer(anna), 'content-type': PART, 'upload-offset': '0' },
      body: new Blob(['012345']).stream(),
      duplex: 'half',
    });
    expect(await code(chunked)).toEqual([413, 'too_large']);
    const [, offset] = await head(path);
    expect(Number(offset)).toBeLessThanOrEqual(5);
  });

  test.each<[string, string, Headers, number, string]>([
    ['without a length', 'POST', {}, 400, 'invalid_input'],
    ['with a length that is none', 'POST', { 'upload-length': '1e3' }, 400, 'invalid_input'],
    ['with a negative length', 'POST', { 'upload-length': '-1' }, 400, 'invalid_input'],
    ['of a length that comes later', 'POST', { 'upload-defer-length': '1' }, 400, 'invalid_input'],
    ['that is too large', 'POST', { 'upload-length': String(4 * KIB * KIB + 1) }, 413, 'too_large'],
    ['beyond every limit', 'POST', { 'upload-length': '999999999999999' }, 413, 'too_large'],
    ['of another version', 'POST', { 'upload-length': '1', 'tus-resumable': '0.2.2' }, 412, 'unsupported_tus_version'],
    ['of nobody', 'POST', { 'upload-length': '1', authorization: 'Bearer x' }, 401, 'unauthenticated'],
  ])('is not begun %s', async (_what, method, headers, status, kind) => {
    const before = await rowsOf(server);
    expect(await code(await tus(method, '/v1/files/uploads', headers))).toEqual([status, kind]);
    expect(await rowsOf(server)).toEqual(before);
  });

  test('says what it can, to who asks and to who speaks another version', async () => {
    const optionsResponse = await tus('OPTIONS', '/v1/files/uploads', { 'tus-resumable': '' });
    const names = ['tus-version', 'tus-extension', 'tus-max-size'];
    expect([optionsResponse.status, ...names.map((name) => optionsResponse.headers.get(name))]).toEqual([
      204,
      '1.0.0',
      'creation,creation-with-upload,expiration,termination',
      String(4 * KIB * KIB),
    ]);
    const other = await tus('HEAD', '/v1/files/uploads/x', { 'tus-resumable': '2.0.0' });
    expect([other.status, other.headers.get('tus-version'), other.headers.get('tus-resumable')]).toEqual([
      412,
      '1.0.0',
      '1.0.0',
    ]);
    expect((await tus('GET', '/v1/files/uploads')).status).toBe(405);
  });

  test('takes parts as such alone', async () => {
    const path = await create(5);
    expect(await code(await patch(path, 0, 'hello', { 'content-type': 'text/plain' }))).toEqual([
      415,
      'unsupported_media',
    ]);
    const without = await tus('PATCH', path, { 'content-type': PART }, 'hello');
    expect(await code(without)).toEqual([400, 'invalid_input']);
  });

  test('is nobody else’s', async () => {
    const berta = await createPerson(server, 'berta');
    const path = await create(5);
    for (const method of ['HEAD', 'PATCH', 'DELETE']) {
      const headers = { ...bearer(berta), 'content-type': PART, 'upload-offset': '0' };
      expect((await tus(method, path, headers)).status).toBe(404);
    }
    expect((await tus('HEAD', `/v1/files/uploads/${'x'.repeat(22)}`)).status).toBe(404);
  });

  test('that is ended is gone, with what it took', async () => {
    const before = await usageOf(server);
    const path = await create(1_000);
    await patch(path, 0, noise(10));
    expect((await usageOf(server))!.bytes).toBe(before!.bytes + 1_000);
    expect((await tus('DELETE', path)).status).toBe(204);
    expect(await usageOf(server)).toEqual(before);
    expect((await tus('HEAD', path)).status).toBe(404);
  });

  test('does not take a file away from its message', async () => {
    const group = await server.createGroup();
    const path = await create(1);
    await patch(path, 0, 'x');
    await attach(server, path.split('/').at(-1)!, group.id);
    const refused = await tus('DELETE', path);
    expect(refused.status).toBe(404);
    expect(await refused.json()).toMatchObject({
      code: 'file_not_found',
      message: 'A message has this file, so it was not removed: delete the message, and the file goes with it',
    });
  });

  test('that stood still for too long is over', async () => {
    const path = await create(5);
    await server.database.query(
      (sql) => sql`update file set updated_at = now() - interval '25 hours' where id = ${path.split('/').at(-1)!}`,
    );
    expect((await tus('HEAD', path)).status).toBe(410);
    expect(await code(await patch(path, 0, 'hello'))).toEqual([410, 'upload_expired']);
  });

  test('whose file the store has lost is over, and can be removed', async () => {
    const path = await create(5);
    await patch(path, 0, 'hello');
    await server.database.query((sql) => sql`update file set state = 'lost' where id = ${path.split('/').at(-1)!}`);
    expect((await tus('HEAD', path)).status).toBe(410);
    expect(await code(await patch(path, 5, ''))).toEqual([410, 'upload_expired']);
    expect((await tus('DELETE', path)).status).toBe(204);
    expect((await tus('HEAD', path)).status).toBe(404);
  });

  test('is taken from one request at a time', async () => {
    const path = await create(20);
    const wire = await beginPart(path, 0, 10, '01234');
    expect(await code(await patch(path, 0, 'x'))).toEqual([423, 'upload_locked']);
    wire.write('56789');
    expect((await wire.response()).status).toBe(204);
    wire.close();
    expect((await patch(path, 10, '0123456789')).status).toBe(204);
    expect((await content(path)).toString()).toBe('01234567890123456789');
  });

  test('goes on behind a connection that was cut, from what had arrived', async () => {
    const path = await create(2 * KIB * KIB);
    const bytes = noise(2 * KIB * KIB);
    const wire = await beginPart(path, 0, bytes.length, bytes.subarray(0, KIB * KIB));
    await eventually(
      () => wire.pending,
      (left) => left === 0,
    );
    wire.close();
    const [, offset] = await eventually(
      () => head(path),
      ([, at]) => at !== '0',
    );
    expect(Number(offset)).toBeLessThanOrEqual(KIB * KIB);
    const rest = await patch(path, Number(offset), bytes.subarray(Number(offset)));
    expect(rest.status).toBe(204);
    expect((await content(path)).equals(bytes)).toBe(true);
  });

  test('goes on beside a request that has gone silent', async () => {
    const path = await create(10);
    const wire = await beginPart(path, 0, 10, '01234');
    // This is the case of a telephone that has changed its network: the old connection stays open and silent.
    const at = await eventually(
      () => head(path),
      ([, offset]) => offset === '5',
    );
    expect(at).toEqual([200, '5', '10']);
    expect((await patch(path, 5, '56789')).status).toBe(204);
    expect((await wire.response()).status).toBe(423);
    wire.close();
    expect((await content(path)).toString()).toBe('0123456789');
  });

  test('that its server was killed behind is complete for who asks', async () => {
    const path = await create(5);
    await patch(path, 0, '0123');
    // The row is made to look as if a server had been killed after the last byte and before the completion.
    const id = path.split('/').at(-1)!;
    await patch(path, 4, '4');
    await server.database.query(
      (sql) => sql`update file set state = 'uploading', upload = '{}', type = 'x/y' where id = ${id}`,
    );
    expect(await head(path)).toEqual([200, '5', '5']);
    expect((await content(path)).toString()).toBe('01234');
  });
});

describe('the client of others', () => {
  const begin = (bytes: Buffer, options: Partial<UploadOptions>): { upload: Upload; done: Promise<void> } => {
    const { promise: done, resolve, reject } = Promise.withResolvers<void>();
    const upload = new Upload(bytes, {
      endpoint: `${server.url}/v1/files/uploads`,
      headers: bearer(anna),
      metadata: { filename: 'größe.bin' },
      retryDelays: [10, 50, 200, 1_000],
      ...options,
      onSuccess: () => resolve(),
      onError: reject,
    });
    return { upload, done };
  };

  test('stores a file in parts, pauses, and goes on', async () => {
    const bytes = noise(3 * KIB * KIB + 5);
    const paused = Promise.withResolvers<void>();
    const { upload, done } = begin(bytes, {
      chunkSize: KIB * KIB,
      onChunkComplete: (_size, accepted) => {
        if (accepted === KIB * KIB) void upload.abort().then(paused.resolve, paused.reject);
      },
    });
    upload.start();
    await paused.promise;
    const path = new URL(upload.url!).pathname;
    expect((await head(path))[1]).toBe(String(KIB * KIB));
    upload.start();
    await done;
    expect((await content(path)).equals(bytes)).toBe(true);
    const { files } = await callAs(server, anna, 'files.list', { limit: 1 });
    expect(files[0].name).toBe('größe.bin');
  });

  test('sends the first part as it begins, and goes on when the server was started anew', async () => {
    const bytes = noise(2 * KIB * KIB);
    const { upload } = begin(bytes, { uploadDataDuringCreation: true, chunkSize: KIB * KIB, retryDelays: null });
    const started = Promise.withResolvers<void>();
    upload.options.onChunkComplete = () => void upload.abort().then(started.resolve, started.reject);
    upload.start();
    await started.promise;
    const path = new URL(upload.url!).pathname;
    await server.restart();
    const next = begin(bytes, { uploadUrl: new URL(path, server.url).href });
    next.upload.start();
    await next.done;
    expect((await content(path)).equals(bytes)).toBe(true);
  });

  test('removes what it began', async () => {
    const { upload, done } = begin(noise(10), {});
    upload.start();
    await done;
    await upload.abort(true);
    expect((await tus('HEAD', new URL(upload.url!).pathname)).status).toBe(404);
  });
});

describe('the question how far an upload is', () => {
  test('that cannot be answered now is asked again: clients take any other refusal for its end', async () => {
    const busy = await TestServer.start({ limits: { sessionRequestRate: 1, sessionRequestBurst: 1 } });
    try {
      const headers = { 'tus-resumable': '1.0.0', ...bearer(await createPerson(busy, 'berta')) };
      const sendRequest = (method: string) =>
        fetch(`${busy.url}/v1/files/uploads/${'x'.repeat(22)}`, { method, headers });
      await sendRequest('HEAD');
      const [head, other] = [await sendRequest('HEAD'), await sendRequest('DELETE')];
      expect([head.status, head.headers.get('retry-after'), other.status]).toEqual([423, '5', 429]);
    } finally {
      await busy.stop();
    }
  });
});

describe('a page of another origin', () => {
  test('may resume uploads where its origin may call', async () => {
    const open = await TestServer.start({ http: { cors: ['https://app.example'] } });
    try {
      const optionsResponse = await fetch(`${open.url}/v1/files/uploads`, {
        method: 'OPTIONS',
        headers: {
          origin: 'https://app.example',
          'access-control-request-method': 'PATCH',
          'access-control-request-headers': 'authorization,tus-resumable,upload-offset',
        },
      });
      expect(optionsResponse.headers.get('access-control-allow-methods')).toContain('PATCH');
      expect(optionsResponse.headers.get('access-control-allow-headers')).toContain('upload-offset');
      const response = await fetch(`${open.url}/v1/files/uploads`, {
        method: 'POST',
        headers: { origin: 'https://app.example' },
      });
      const exposed = response.headers.get('access-control-expose-headers')!;
      for (const name of ['Upload-Offset', 'Location', 'Tus-Resumable', 'ETag']) expect(exposed).toContain(name);
    } finally {
      await open.stop();
    }
  });
});
