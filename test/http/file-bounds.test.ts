import { mkdtemp, readdir, readFile, readlink, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { afterEach, describe, expect, test } from '@jest/globals';
import { callAs } from '../support/call.ts';
import type { ConfigChanges } from '../support/config.ts';
import { eventually } from '../support/eventually.ts';
import { createPerson, type TestPerson } from '../support/people.ts';
import { recordingLog } from '../support/recording-log.ts';
import { postJson, TestServer } from '../support/server.ts';
import { scrape } from '../metrics/scrape.ts';
import { bearer, noise, rowsOf, upload, uploaded, usageOf } from './files-fixture.ts';
import { requestBytes, Wire } from './wire.ts';

const KIB = 1024;

let server: TestServer;
let anna: TestPerson;
/** The folder in which the server stores files. */
let folder: string;
const cleanups: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function start(changes: ConfigChanges = {}, logged: string[] = []): Promise<void> {
  folder = await mkdtemp(join(tmpdir(), 'klatch-files-'));
  const made = folder;
  cleanups.push(() => rm(made, { recursive: true, force: true }));
  const started = await TestServer.start(
    { files: { localFilesFolder: join(folder, 'files') }, ...changes },
    { log: recordingLog(logged) },
  );
  server = started;
  cleanups.push(() => started.stop());
  anna = await createPerson(server, 'anna');
}

/** Begins a plain upload on a connection, and sends only its headers. */
async function begin(headers: Record<string, string>, path = '/v1/files?name=a.bin'): Promise<Wire> {
  const wire = await Wire.open(server.port);
  cleanups.push(async () => wire.close());
  wire.write(requestBytes({ path, headers: { ...bearer(anna), ...headers } }));
  return wire;
}

/** Begins an upload. Resolves when the server has admitted it. */
async function openUpload(length: number): Promise<Wire> {
  const wire = await begin({ 'content-length': String(length), expect: '100-continue' });
  expect((await wire.response()).status).toBe(100);
  return wire;
}

const nothingLeft = async (): Promise<void> => {
  await eventually(
    () => rowsOf(server),
    (rows) => rows.length === 0,
  );
  expect(await usageOf(server)).toEqual({ bytes: 0, files: 0 });
};

describe('the time of a request', () => {
  test('does not end an upload whose bytes flow, and all others as ever', async () => {
    await start({ http: { requestToResponseTimeoutMs: 600 } });
    const wire = await openUpload(5);
    for (const letter of 'hell') {
      wire.write(letter);
      await wait(700);
    }
    wire.write('o');
    const response = await wire.response();
    expect([response.status, response.body.size]).toEqual([201, 5]);
    // The next request on the same connection has its full time again.
    wire.write(
      requestBytes({ path: '/v1/api/files.list', headers: { ...bearer(anna), 'content-length': '10' }, body: '{' }),
    );
    expect((await wire.response()).status).toBe(408);
    await wire.ended();
    // The server closes the connection of a refused upload.
    const refused = await begin({ 'content-length': '1000000000' });
    expect((await refused.response()).status).toBe(413);
    await refused.ended();
  });

  test('ends one whose headers come slowly', async () => {
    await start({ http: { requestToResponseTimeoutMs: 600 } });
    const wire = await Wire.open(server.port);
    wire.write('POST /v1/files HTTP/1.1\r\nhost: x\r\n');
    expect((await wire.response()).status).toBe(408);
    wire.close();
  });
});

describe('an upload', () => {
  test('is refused before its body is asked for', async () => {
    await start({ limits: { fileBytes: 10, storagePerUserBytes: 5 } });
    const sendRequest = async (headers: Record<string, string>) => {
      const wire = await begin({ expect: '100-continue', ...headers });
      const response = await wire.response();
      wire.close();
      return [response.status, response.body.code];
    };
    expect(await sendRequest({ 'content-length': '11' })).toEqual([413, 'too_large']);
    expect(await sendRequest({ 'content-length': '6' })).toEqual([413, 'storage_quota_exceeded']);
    expect(await sendRequest({ 'content-length': '1', authorization: 'Bearer x' })).toEqual([401, 'unauthenticated']);
    const wire = await openUpload(5);
    wire.write('hello');
    expect((await wire.response()).status).toBe(201);
  });

  test('leaves nothing when its client hangs up', async () => {
    await start();
    const wire = await openUpload(10 * KIB * KIB);
    wire.write(noise(300 * KIB));
    await eventually(
      () => rowsOf(server),
      (rows) => rows.length === 1,
    );
    wire.close();
    await nothingLeft();
  });

  test('leaves nothing when it ends before its announced length', async () => {
    await start();
    const wire = await openUpload(10);
    wire.write('hello');
    wire.end();
    expect((await wire.response()).status).toBe(400);
    await nothingLeft();
  });

  test('is no longer than announced: what follows is another request', async () => {
    await start();
    const wire = await begin({ 'content-length': '5' });
    wire.write('hello, world\r\n\r\n');
    const stored = await wire.response();
    expect([stored.status, stored.body.size]).toEqual([201, 5]);
    expect((await wire.response()).status).toBe(400);
    expect(await rowsOf(server)).toEqual([{ state: 'stored', size: 5, received: 5 }]);
  });

  test('that is refused in its middle is answered, and the connection ends', async () => {
    await start({ limits: { fileBytes: 100 * KIB } });
    const wire = await begin({ 'transfer-encoding': 'chunked' });
    const chunk = noise(64 * KIB);
    for (let n = 0; n < 3; n += 1) {
      wire.write(`${chunk.length.toString(16)}\r\n`);
      wire.write(chunk);
      wire.write('\r\n');
    }
    const response = await wire.response();
    expect([response.status, response.body.code]).toEqual([413, 'too_large']);
    await wire.ended();
    await nothingLeft();
  });

  test('is one of a bounded number, of its account and in all', async () => {
    await start({ limits: { concurrentUploads: 3, concurrentUploadsPerUser: 2 } });
    const berta = await createPerson(server, 'berta');
    const [first] = [await openUpload(5), await openUpload(5)];
    const full = { status: 503, body: { code: 'too_many_uploads' } };
    const refused = await upload(server, anna, 'x');
    expect(refused).toMatchObject(full);
    expect(refused.headers.get('retry-after')).toBe('10');
    const headers = { ...bearer(berta), 'content-length': '5', expect: '100-continue' };
    const others = await begin(headers);
    expect((await others.response()).status).toBe(100);
    const carla = await createPerson(server, 'carla');
    first.write('hello');
    expect((await first.response()).status).toBe(201);
    await eventually(
      () => upload(server, carla, 'x').then(({ status }) => status),
      (status) => status === 201,
    );
  });

  test('in hand is ended by a stop: a whole one leaves nothing, one in parts goes on later', async () => {
    await start({ http: { stopDrainTimeoutMs: 5_000 } });
    const simpleUpload = await openUpload(1_000);
    simpleUpload.write('some');
    const resumableUpload = await fetch(`${server.url}/v1/files/uploads`, {
      method: 'POST',
      headers: { ...bearer(anna), 'tus-resumable': '1.0.0', 'upload-length': '10' },
    });
    const { pathname } = new URL(resumableUpload.headers.get('location')!, resumableUpload.url);
    const part = await Wire.open(server.port);
    cleanups.push(async () => part.close());
    const headers = {
      ...bearer(anna),
      'tus-resumable': '1.0.0',
      'upload-offset': '0',
      'content-type': 'application/offset+octet-stream',
      'content-length': '10',
      expect: '100-continue',
    };
    part.write(requestBytes({ method: 'PATCH', path: pathname, headers }));
    expect((await part.response()).status).toBe(100);
    part.write('01234');
    const stored = join(folder, 'files', 'uploads');
    await eventually(
      async () => Promise.all((await readdir(stored)).map((name) => readFile(join(stored, name), 'utf8'))),
      (contents) => contents.includes('01234') && contents.includes('some'),
    );
    await server.restart();
    const response = await part.response();
    expect([response.status, response.body.code]).toEqual([503, 'stopping']);
    expect(await rowsOf(server)).toEqual([{ state: 'uploading', size: 10, received: 5 }]);
    const rest = await fetch(`${server.url}${pathname}`, {
      method: 'PATCH',
      headers: {
        ...bearer(anna),
        'tus-resumable': '1.0.0',
        'upload-offset': '5',
        'content-type': headers['content-type'],
      },
      body: '56789',
    });
    expect(rest.status).toBe(204);
  });
});

describe('an upload in one piece', () => {
  test('is written by nobody but the request that brings it', async () => {
    await start();
    const wire = await begin({ 'transfer-encoding': 'chunked', expect: '100-continue' });
    expect((await wire.response()).status).toBe(100);
    wire.write('5\r\nhello\r\n');
    const { files } = await callAs<{ files: { id: string }[] }>(server, anna, 'files.list');
    const { id } = files[0]!;
    const headers = {
      ...bearer(anna),
      'tus-resumable': '1.0.0',
      'content-type': 'application/offset+octet-stream',
      'upload-offset': '0',
    };
    const sendRequest = async (method: string) => {
      const body = method === 'PATCH' ? { body: 'evil' } : {};
      return (await fetch(`${server.url}/v1/files/uploads/${id}`, { method, headers, ...body })).status;
    };
    expect([await sendRequest('HEAD'), await sendRequest('PATCH')]).toEqual([404, 404]);
    wire.write('0\r\n\r\n');
    expect((await wire.response()).body).toMatchObject({ id, size: 5 });
    expect([await sendRequest('HEAD'), await sendRequest('PATCH')]).toEqual([404, 404]);
    expect(await (await fetch(`${server.url}/v1/files/${id}`, { headers: bearer(anna) })).text()).toBe('hello');
  });
});

describe('a download', () => {
  /** Overwrites a file of the store without the server. */
  const overwrite = async (id: string, content: string): Promise<void> => {
    const paths = await readdir(join(folder, 'files'), { recursive: true });
    await writeFile(
      join(
        folder,
        'files',
        paths.find((path) => path.endsWith(id))!,
      ),
      content,
    );
  };

  test('is as long as it says, or is cut, whatever the store has', async () => {
    await start();
    const { id } = await uploaded(server, anna, 'hello');
    const get = () => fetch(`${server.url}/v1/files/${id}`, { headers: bearer(anna) });
    await overwrite(id, 'hello HTTP/1.1 200 OK');
    expect(await (await get()).text()).toBe('hello');
    await overwrite(id, 'hel');
    await expect(get().then((response) => response.text())).rejects.toThrow();
  });

  /** The number of the store's files that this process has open. */
  const openFiles = async (): Promise<number> => {
    const links = await Promise.all(
      (await readdir('/proc/self/fd')).map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => '')),
    );
    return links.filter((link) => link.startsWith(join(folder, 'files'))).length;
  };
  const sent = async (): Promise<number> => (await scrape(server.metricsUrl)).value('klatch_file_sent_bytes_total');

  test('goes as fast as its client reads, and its file is closed when the client leaves', async () => {
    await start({ metrics: { metricsEnabled: true }, limits: { fileBytes: 64 * KIB * KIB } });
    const content = noise(48 * KIB * KIB);
    const { id } = await uploaded(server, anna, content);
    const wire = await Wire.open(server.port);
    cleanups.push(async () => wire.close());
    wire.pause();
    wire.write(requestBytes({ method: 'GET', path: `/v1/files/${id}`, headers: bearer(anna) }));
    let before = -1;
    // The kernel and the buffers on the path accept some bytes; then the count of sent bytes stays the same.
    const held = await eventually(
      async () => {
        await wait(200);
        const now = await sent();
        const isStill = now > 0 && now === before;
        before = now;
        return { now, isStill };
      },
      ({ isStill }) => isStill,
    );
    expect(held.now).toBeLessThan(24 * KIB * KIB);
    expect(await openFiles()).toBe(1);
    wire.close();
    await eventually(openFiles, (open) => open === 0);
  });
});

describe('a store that is away', () => {
  test('costs nobody a message, and is told in a sentence', async () => {
    const lines: string[] = [];
    await start({ files: { localFilesFolder: '/dev/null/files' } }, lines);
    const refused = await upload(server, anna, 'x', { name: 'geheim.txt' });
    expect([refused.status, refused.body]).toEqual([
      503,
      { code: 'storage_unavailable', message: 'The store of files is away; please repeat it later' },
    ]);
    const group = await server.createGroup();
    expect((await postJson(group.webhook, { text: 'still here' })).status).toBe(200);
    expect(lines.join('\n')).toContain('the store of files cannot be used');
    expect((await callAs(server, anna, 'files.list')).files).toEqual([]);
  });
});

describe('logs', () => {
  test('tell no name, no id, no token and no address of a file', async () => {
    const lines: string[] = [];
    await start({}, lines);
    const file = await uploaded(server, anna, 'inhalt', 'geheimer-name.txt');
    const { url } = await callAs<{ url: string }>(server, anna, 'files.link', { file: file.id });
    const { pathname, search } = new URL(url);
    await (await fetch(`${server.url}${pathname}${search}`)).text();
    const wire = await openUpload(100);
    wire.write('x');
    wire.close();
    await eventually(
      () => rowsOf(server),
      (rows) => rows.length === 1,
    );
    for (const secret of ['geheimer-name', 'inhalt', file.id, anna.token, search.slice(-43)]) {
      expect(lines.join('\n')).not.toContain(secret);
    }
  });
});
