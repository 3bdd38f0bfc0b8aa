import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { callAs } from '../support/call.ts';
import { createPerson, signIn, type TestPerson } from '../support/people.ts';
import { TestServer } from '../support/server.ts';
import { attach, bearer, noise, pieces, rowsOf, upload, uploaded, usageOf } from './files-fixture.ts';

const KIB = 1024;
const PNG = Buffer.from('89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489', 'hex');

let server: TestServer;
let anna: TestPerson;
let berta: TestPerson;
beforeAll(async () => {
  server = await TestServer.start({ limits: { fileBytes: 3 * KIB * KIB, storagePerUserBytes: 8 * KIB * KIB } });
  anna = await createPerson(server, 'anna', { admin: false });
  berta = await createPerson(server, 'berta');
});
afterAll(() => server.stop());

const get = (path: string, headers: Record<string, string> = bearer(anna), method = 'GET') =>
  fetch(`${server.url}${path}`, { method, headers, redirect: 'manual' });

describe('a file', () => {
  test('is stored as it comes, and given back byte by byte', async () => {
    const content = noise(2 * KIB * KIB + 7);
    const { status, body } = await upload(server, anna, content, { name: 'noise.bin' });
    expect(status).toBe(201);
    expect(body).toEqual({
      id: expect.stringMatching(/^[\w-]{22}$/),
      name: 'noise.bin',
      type: 'application/octet-stream',
      size: content.length,
    });
    const response = await get(`/v1/files/${body.id}`);
    expect(response.status).toBe(200);
    expect(Buffer.from(await response.arrayBuffer()).equals(content)).toBe(true);
  });

  test('may come without a length', async () => {
    const chunks = [noise(700 * KIB), noise(900 * KIB), noise(3)];
    const { body } = await upload(server, anna, pieces(...chunks), { name: 'x' });
    expect(body.size).toBe(1_600 * KIB + 3);
    const response = await get(`/v1/files/${body.id}`);
    expect(Buffer.from(await response.arrayBuffer()).equals(Buffer.concat(chunks))).toBe(true);
    const [row] = (await rowsOf(server)).slice(-1);
    expect(row).toEqual({ state: 'stored', size: body.size, received: body.size });
  });

  test('may be empty', async () => {
    const file = await uploaded(server, anna, '');
    expect(file.size).toBe(0);
    const response = await get(`/v1/files/${file.id}`);
    expect([response.status, response.headers.get('content-length'), await response.text()]).toEqual([200, '0', '']);
  });

  test('has a name that is one, and a type that its content shows, whatever it was called', async () => {
    const file = await uploaded(server, anna, PNG, '../../\u202egnp.exe\u0000');
    expect([file.name, file.type]).toEqual(['gnp.exe', 'image/png']);
    const page = await uploaded(server, anna, '<script>alert(1)</script>', 'a.png');
    expect(page.type).toBe('text/plain');
    expect((await upload(server, anna, 'x')).body.name).toBe('file');
  });

  test('is answered with headers that keep a browser from running it', async () => {
    const picture = await uploaded(server, anna, PNG, 'Größe "1".png');
    const page = await uploaded(server, anna, '<html><script>alert(1)</script></html>', 'a.html');
    const shown = (response: Response, names: string[]) => names.map((name) => response.headers.get(name));
    const safe = ['x-content-type-options', 'content-security-policy', 'cache-control', 'referrer-policy'];
    const responses = [await get(`/v1/files/${picture.id}`), await get(`/v1/files/${page.id}`)];
    for (const response of responses) {
      expect(shown(response, safe)).toEqual([
        'nosniff',
        "sandbox; default-src 'none'",
        'private, no-cache',
        'no-referrer',
      ]);
      await response.arrayBuffer();
    }
    expect(shown(responses[0]!, ['content-type', 'content-disposition', 'etag'])).toEqual([
      'image/png',
      `inline; filename="Gr__e _1_.png"; filename*=UTF-8''Gr%C3%B6%C3%9Fe%20_1_.png`,
      `"${picture.id}"`,
    ]);
    expect(shown(responses[1]!, ['content-type', 'content-disposition'])).toEqual([
      'text/plain; charset=utf-8',
      `attachment; filename="a.html"; filename*=UTF-8''a.html`,
    ]);
  });

  test('is for its owner alone until a message has it, then for who is in the conversation', async () => {
    const group = await server.createGroup();
    await server.operate('groups.add-member', { group: group.id, user: 'berta' });
    const { id } = await uploaded(server, anna);
    const status = async (person: TestPerson) => (await get(`/v1/files/${id}`, bearer(person))).status;
    expect([await status(anna), await status(berta)]).toEqual([200, 404]);
    await attach(server, id, group.id);
    expect([await status(anna), await status(berta)]).toEqual([404, 200]);
    await server.operate('groups.remove-member', { group: group.id, user: 'berta' });
    expect(await status(berta)).toBe(404);
  });

  test('is refused to who has no session or no scope, before anything of it is read', async () => {
    const refused = await upload(server, null, 'x');
    expect([refused.status, refused.body.code]).toEqual([401, 'unauthenticated']);
    expect(refused.headers.get('www-authenticate')).toBe('Bearer realm="klatch"');
    const bot = await signIn(server, anna.id, ['messages:read']);
    expect((await upload(server, bot, 'x')).body.code).toBe('missing_scope');
    const writer = await signIn(server, anna.id, ['messages:write']);
    const { body } = await upload(server, writer, 'x');
    expect((await get(`/v1/files/${body.id}`, bearer(bot))).status).toBe(200);
    expect((await get(`/v1/files/${body.id}`, bearer(writer))).status).toBe(403);
    expect((await get(`/v1/files/${body.id}`, {})).status).toBe(401);
  });

  test('that is too large is refused, announced or not, and nothing is left of it', async () => {
    const before = [await rowsOf(server), await usageOf(server)];
    const sentence = `A file has at most ${3 * KIB * KIB} bytes here (limits.file-size)`;
    for (const body of [noise(3 * KIB * KIB + 1), pieces(noise(2 * KIB * KIB), noise(KIB * KIB), 'x')]) {
      const refused = await upload(server, anna, body);
      expect([refused.status, refused.body]).toEqual([413, { message: sentence, code: 'too_large' }]);
    }
    expect([await rowsOf(server), await usageOf(server)]).toEqual(before);
  });

  test('is refused where the room of its owner is used up, in words that name the limit', async () => {
    const carla = await createPerson(server, 'carla');
    for (let n = 0; n < 2; n += 1) await uploaded(server, carla, noise(3 * KIB * KIB));
    const full = {
      status: 413,
      body: { code: 'storage_quota_exceeded', message: expect.stringContaining('limits.storage-per-user') },
    };
    expect(await upload(server, carla, noise(2 * KIB * KIB + 1))).toMatchObject(full);
    expect(await upload(server, carla, pieces(noise(2 * KIB * KIB), 'x'))).toMatchObject(full);
    const { files, usage } = await callAs(server, carla, 'files.list');
    expect([files.length, usage]).toEqual([2, { bytes: 6 * KIB * KIB, files: 2, max_bytes: 8 * KIB * KIB }]);
    await callAs(server, carla, 'files.remove', { file: files[0].id });
    expect((await upload(server, carla, noise(2 * KIB * KIB))).status).toBe(201);
  });

  test('is not taken in a form or encoded, with a word how to send it', async () => {
    const form = await upload(server, anna, 'x', { headers: { 'content-type': 'multipart/form-data; boundary=x' } });
    expect([form.status, form.body.message]).toEqual([415, expect.stringContaining('--data-binary')]);
    const packed = await upload(server, anna, 'x', { headers: { 'content-encoding': 'gzip' } });
    expect([packed.status, packed.body.code]).toEqual([415, 'unsupported_media']);
  });

  test('has no other methods', async () => {
    const { id } = await uploaded(server, anna);
    for (const [path, allow] of [
      ['/v1/files', 'POST, OPTIONS'],
      [`/v1/files/${id}`, 'GET, HEAD, OPTIONS'],
      [`/v1/files/${id}/a.txt`, 'GET, HEAD, OPTIONS'],
    ] as const) {
      const response = await get(path, bearer(anna), 'PUT');
      expect([response.status, response.headers.get('allow')]).toEqual([405, allow]);
    }
    for (const path of ['/v1/files/short', '/v1/files/..%2f..%2fetc%2fpasswd', `/v1/files/${id}x`]) {
      expect((await get(path)).status).toBe(404);
    }
  });
});

describe('a part of a file', () => {
  let path: string;
  const content = Buffer.from('0123456789');
  beforeAll(async () => {
    path = `/v1/files/${(await uploaded(server, anna, content)).id}`;
  });
  const part = async (range: string, more: Record<string, string> = {}) => {
    const response = await get(path, { ...bearer(anna), range, ...more });
    return [response.status, response.headers.get('content-range'), await response.text()];
  };

  test.each([
    ['bytes=0-3', 206, 'bytes 0-3/10', '0123'],
    ['bytes=8-', 206, 'bytes 8-9/10', '89'],
    ['bytes=8-99999999999999999999', 206, 'bytes 8-9/10', '89'],
    ['bytes=-3', 206, 'bytes 7-9/10', '789'],
    ['bytes=-300', 206, 'bytes 0-9/10', '0123456789'],
    ['bytes=0-1,4-5', 200, null, '0123456789'],
    ['bytes=5-2', 200, null, '0123456789'],
    ['lines=1-2', 200, null, '0123456789'],
    ['bytes=', 200, null, '0123456789'],
  ])('is given for %s', async (range, status, contentRange, text) => {
    expect(await part(range)).toEqual([status, contentRange, text]);
  });

  test.each(['bytes=10-', 'bytes=99999999999999999999-', 'bytes=-0'])('is refused for %s', async (range) => {
    const [status, contentRange, text] = await part(range);
    expect([status, contentRange]).toEqual([416, 'bytes */10']);
    expect(JSON.parse(text as string).code).toBe('invalid_range');
  });

  test('is given only of the file that the client knows', async () => {
    const etag = `"${path.split('/').at(-1)}"`;
    expect((await part('bytes=0-3', { 'if-range': etag }))[0]).toBe(206);
    expect((await part('bytes=0-3', { 'if-range': '"another"' }))[0]).toBe(200);
    expect((await part('bytes=0-3', { 'if-range': 'Wed, 21 Oct 2026 07:28:00 GMT' }))[0]).toBe(200);
  });

  test('and the whole are not sent to who has the file, or asks for its headers alone', async () => {
    const etag = `"${path.split('/').at(-1)}"`;
    for (const known of [etag, `"x", W/${etag}`, '*']) {
      const response = await get(path, { ...bearer(anna), 'if-none-match': known });
      expect([response.status, await response.text(), response.headers.get('etag')]).toEqual([304, '', etag]);
    }
    const head = await get(path, bearer(anna), 'HEAD');
    expect([head.status, head.headers.get('content-length'), await head.text()]).toEqual([200, '10', '']);
  });
});

describe('a signed address', () => {
  const link = async (person: TestPerson, file: string): Promise<URL> => {
    const { url } = await callAs<{ url: string }>(server, person, 'files.link', { file });
    const { pathname, search } = new URL(url);
    return new URL(`${server.url}${pathname}${search}`);
  };

  test('gives the file without a session, for an hour', async () => {
    const { id } = await uploaded(server, anna, 'linked', 'Ein Bericht.txt');
    const { url, expires_at } = await callAs(server, anna, 'files.link', { file: id });
    expect(url).toContain(`http://klatch.example/v1/files/${id}/Ein%20Bericht.txt?expires=`);
    const left = Date.parse(expires_at) - Date.now();
    expect([left > 3_500_000, left <= 3_600_000]).toEqual([true, true]);
    const response = await fetch(await link(anna, id));
    expect([response.status, await response.text()]).toEqual([200, 'linked']);
  });

  test('that was altered or is somebody else’s gives nothing', async () => {
    const { id } = await uploaded(server, anna);
    const other = await uploaded(server, anna);
    const good = await link(anna, id);
    const altered = [
      good.href.replace(id, other.id),
      good.href.replace('a.txt', 'b.txt'),
      good.href.replace(/expires=\d/, 'expires=9'),
      good.href.replace(`for=a${anna.id}`, `for=a${berta.id}`),
      good.href.replace(/&signature=.*/, ''),
    ];
    for (const url of altered) {
      const response = await fetch(url);
      expect([url === good.href, response.status, ((await response.json()) as { code: string }).code]).toEqual([
        false,
        403,
        'invalid_link',
      ]);
    }
    expect((await fetch(good, { headers: bearer(berta) })).status).toBe(403);
    expect((await fetch(good, { headers: bearer(anna) })).status).toBe(200);
  });

  test('is good as long as its account may read the file', async () => {
    const group = await server.createGroup();
    await server.operate('groups.add-member', { group: group.id, user: 'berta' });
    const { id } = await uploaded(server, anna);
    await attach(server, id, group.id);
    const url = await link(berta, id);
    expect((await fetch(url)).status).toBe(200);
    await server.operate('groups.remove-member', { group: group.id, user: 'berta' });
    expect((await fetch(url)).status).toBe(404);
  });
});

describe('one’s own files', () => {
  test('are listed newest first, and removed where no message has them', async () => {
    const dora = await createPerson(server, 'dora');
    const made = [
      await uploaded(server, dora, '1'),
      await uploaded(server, dora, '22'),
      await uploaded(server, dora, '333'),
    ];
    const group = await server.createGroup();
    await attach(server, made[0]!.id, group.id);
    const first = await callAs(server, dora, 'files.list', { limit: 2 });
    expect(first.files.map(({ id }: { id: string }) => id)).toEqual([made[2]!.id, made[1]!.id]);
    const rest = await callAs(server, dora, 'files.list', { limit: 2, before: first.next });
    expect(rest).toMatchObject({ files: [{ id: made[0]!.id, message: `${group.id}:1`, complete: true }], next: null });
    await callAs(server, dora, 'files.remove', { file: made[1]!.id });
    // The file at the end of the first page is gone. The list still continues after the place of that file.
    const again = await callAs(server, dora, 'files.list', { limit: 2, before: first.next });
    expect(again.files.map(({ id }: { id: string }) => id)).toEqual([made[0]!.id]);
    await expect(callAs(server, dora, 'files.list', { before: 'x' })).rejects.toMatchObject({ code: 'invalid_input' });
    expect((await get(`/v1/files/${made[1]!.id}`, bearer(dora))).status).toBe(404);
    await expect(callAs(server, dora, 'files.remove', { file: made[0]!.id })).rejects.toMatchObject({
      code: 'file_not_found',
    });
    expect((await callAs(server, dora, 'files.list')).usage).toMatchObject({ bytes: 4, files: 2 });
  });
});
