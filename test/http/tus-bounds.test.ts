import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createPerson, type TestPerson } from '../support/people.ts';
import { readJson, TestServer } from '../support/server.ts';
import { bearer, pieces, rowsOf } from './files-fixture.ts';

let server: TestServer;
let anna: TestPerson;
beforeAll(async () => {
  server = await TestServer.start();
  anna = await createPerson(server, 'anna');
});
afterAll(() => server.stop());

type Body = string | ReadableStream<Uint8Array>;
const send = (method: string, path: string, headers: Record<string, string>, body: Body): Promise<Response> =>
  fetch(new URL(path, server.url), {
    method,
    headers: {
      'tus-resumable': '1.0.0',
      'content-type': 'application/offset+octet-stream',
      ...bearer(anna),
      ...headers,
    },
    body,
    duplex: 'half',
  });
const create = (size: number, body: Body): Promise<Response> =>
  send('POST', '/v1/files/uploads', { 'upload-length': String(size) }, body);
const TOO_LARGE = { status: 413, body: { code: 'too_large' } };

describe('an upload in parts takes no more bytes than it announced', () => {
  test('when it is whole, whether their number is told or not', async () => {
    for (const whole of ['', 'hello']) {
      const created = await create(whole.length, whole);
      expect([created.status, created.headers.get('upload-offset')]).toEqual([201, String(whole.length)]);
      const path = new URL(created.headers.get('location')!, created.url).pathname;
      const patch = (body: Body): Promise<Response> =>
        send('PATCH', path, { 'upload-offset': String(whole.length) }, body);
      expect(await readJson(await patch('x'))).toMatchObject(TOO_LARGE);
      expect(await readJson(await patch(pieces('x')))).toMatchObject(TOO_LARGE);
      for (const nothing of ['', pieces()]) expect((await patch(nothing)).status).toBe(204);
      const file = await fetch(`${server.url}/v1/files/${path.split('/').at(-1)}`, { headers: bearer(anna) });
      expect(await file.text()).toBe(whole);
    }
  });

  test('when it is begun, and nothing stays of one that brings them', async () => {
    const before = await rowsOf(server);
    for (const size of [0, 6]) {
      for (const body of ['7 bytes', pieces('7 bytes')]) {
        expect(await readJson(await create(size, body))).toMatchObject(TOO_LARGE);
      }
    }
    expect(await rowsOf(server)).toEqual(before);
  });
});
