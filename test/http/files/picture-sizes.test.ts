import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Attachment } from '../../../src/model/attachment.ts';
import { history, joined, send } from '../../operations/conversation-calls.ts';
import type { TestPerson } from '../../support/people.ts';
import { TestServer } from '../../support/server.ts';
import { bearer, uploaded } from '../files-fixture.ts';

const PNG = Buffer.from('89504e470d0a1a0a0000000d49484452000002800000014008060000001f15c489', 'hex');
const JPEG_FRAME = Buffer.from('ffc0001108014002800301220002110103110100', 'hex');

let server: TestServer;
let anna: TestPerson;
let group: number;
beforeAll(async () => {
  server = await TestServer.start();
  ({ id: group } = await server.createGroup('Pictures'));
  anna = await joined(server, 'anna', group);
});
afterAll(() => server.stop());

async function attached(id: string): Promise<Attachment> {
  await send(server, anna, group, '', { files: [id] });
  const { messages } = await history(server, anna, { conversation: group, limit: 1 });
  return messages[0]!.attachments[0]!;
}

/** A JPEG with this many bytes of camera metadata before its size. */
function jpegWithNotes(bytes: number): Buffer {
  const parts = [Buffer.from('ffd8', 'hex')];
  for (let left = bytes; left > 0; left -= 60_000) {
    const length = Math.min(left, 60_000);
    parts.push(Buffer.from([0xff, 0xe2, (length + 2) >> 8, (length + 2) & 0xff]), Buffer.alloc(length, 0x20));
  }
  return Buffer.concat([...parts, JPEG_FRAME, Buffer.alloc(1_000)]);
}

test.each([
  ['a PNG', PNG],
  ['a JPEG', jpegWithNotes(10)],
  ['a JPEG whose size comes late', jpegWithNotes(200_000)],
])('a message says how large %s is', async (_what, content) => {
  const file = await uploaded(server, anna, content, 'picture');
  expect(await attached(file.id)).toEqual({ ...file, width: 640, height: 320 });
});

test.each([
  ['text', Buffer.from('hello')],
  ['a JPEG whose size comes later than is read', jpegWithNotes(400_000)],
])('a message says no size of %s', async (_what, content) => {
  const file = await uploaded(server, anna, content, 'picture');
  expect(Object.keys(await attached(file.id))).toEqual(['id', 'name', 'type', 'size']);
});

test('a picture that came in parts has a size as well', async () => {
  const headers = { 'tus-resumable': '1.0.0', ...bearer(anna) };
  const created = await fetch(`${server.url}/v1/files/uploads`, {
    method: 'POST',
    headers: { ...headers, 'upload-length': String(PNG.length) },
  });
  const path = new URL(created.headers.get('location')!, created.url).pathname;
  for (const [offset, end] of [
    [0, 3],
    [3, PNG.length],
  ] as const) {
    const part = { ...headers, 'content-type': 'application/offset+octet-stream', 'upload-offset': String(offset) };
    const body = new Uint8Array(PNG.subarray(offset, end));
    expect((await fetch(`${server.url}${path}`, { method: 'PATCH', headers: part, body })).status).toBe(204);
  }
  expect(await attached(path.split('/').at(-1)!)).toMatchObject({ type: 'image/png', width: 640, height: 320 });
});
