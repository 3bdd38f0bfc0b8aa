import { afterEach, describe, expect, test } from '@jest/globals';
import { callAs } from '../support/call.ts';
import type { ConfigChanges } from '../support/config.ts';
import { eventually } from '../support/eventually.ts';
import { createPerson, signIn, type TestPerson } from '../support/people.ts';
import { TestServer } from '../support/server.ts';
import { bearer, noise, rowsOf, upload } from './files-fixture.ts';
import { requestBytes, Wire } from './wire.ts';

const MIB = 1024 * 1024;
const FULL = { status: 503, body: { code: 'too_many_uploads' } };

let server: TestServer;
const wires: Wire[] = [];
afterEach(async () => {
  for (const wire of wires.splice(0)) wire.close();
  await server.stop();
});

async function start(limits: ConfigChanges['limits']): Promise<TestPerson> {
  server = await TestServer.start({ limits: limits ?? {} });
  return createPerson(server, 'anna');
}

async function open(path: string, headers: Record<string, string>): Promise<Wire> {
  const wire = await Wire.open(server.port);
  wires.push(wire);
  wire.write(requestBytes({ path, headers }));
  return wire;
}

/** Opens an upload that the server has admitted, and sends none of its body yet. */
async function openUpload(person: Pick<TestPerson, 'token'>, length: number): Promise<Wire> {
  const headers = { ...bearer(person), 'content-length': String(length), expect: '100-continue' };
  const wire = await open('/v1/files', headers);
  expect((await wire.response()).status).toBe(100);
  return wire;
}

/** Opens a post with an unfinished file to a new group of this owner. */
async function postOpenFile(owner: TestPerson): Promise<Wire> {
  const { id, token } = await server.createGroup();
  await server.operate('groups.add-member', { group: id, user: owner.nick, role: 'owner' });
  const before = (await rowsOf(server)).length;
  const wire = await open(`/v1/webhooks/${token}`, {
    'content-type': 'multipart/form-data; boundary=b',
    'transfer-encoding': 'chunked',
  });
  const part = '--b\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\nsome of it';
  wire.write(`${part.length.toString(16)}\r\n${part}\r\n`);
  await eventually(
    () => rowsOf(server),
    (rows) => rows.length === before + 1,
  );
  return wire;
}

describe('the places of one owner', () => {
  test('are those of its groups as well', async () => {
    const anna = await start({ concurrentUploadsPerUser: 2 });
    await postOpenFile(anna);
    await postOpenFile(anna);
    expect(await upload(server, anna, 'x')).toMatchObject(FULL);
    const berta = await createPerson(server, 'berta');
    expect((await upload(server, berta, 'x')).status).toBe(201);
  });

  test('are those of its bots as well', async () => {
    const anna = await start({ concurrentUploadsPerUser: 2 });
    const bots = [];
    for (const nick of ['one', 'two', 'three']) {
      const { id } = await callAs<{ id: number }>(server, anna, 'bots.create', { nick });
      bots.push(await signIn(server, id, ['messages:write']));
    }
    await openUpload(bots[0]!, 5);
    await openUpload(bots[1]!, 5);
    expect(await upload(server, bots[2]!, 'x')).toMatchObject(FULL);
    expect(await upload(server, anna, 'x')).toMatchObject(FULL);
  });
});

describe('when all places are taken', () => {
  test('the slowest upload ends, is told so, and leaves nothing', async () => {
    const anna = await start({ concurrentUploads: 2, concurrentUploadsPerUser: 1 });
    const [berta, carla] = [await createPerson(server, 'berta'), await createPerson(server, 'carla')];
    const slow = await openUpload(anna, 4 * MIB);
    const fast = await openUpload(berta, 4 * MIB);
    const bytes = noise(4 * MIB);
    fast.write(bytes.subarray(0, 2 * MIB));
    expect((await upload(server, carla, 'x')).status).toBe(201);
    const ended = await slow.response();
    expect([ended.status, ended.body.code, ended.headers.get('retry-after')]).toEqual([503, 'too_many_uploads', '10']);
    expect(ended.body.message).toMatch(/was the slowest/);
    fast.write(bytes.subarray(2 * MIB));
    expect((await fast.response()).status).toBe(201);
    await eventually(
      () => rowsOf(server),
      (rows) => rows.length === 2 && rows.every(({ state }) => state === 'stored'),
    );
  });

  test('nobody gets a second place from somebody who has one', async () => {
    const anna = await start({ concurrentUploads: 2, concurrentUploadsPerUser: 2 });
    const berta = await createPerson(server, 'berta');
    const first = await openUpload(anna, 5);
    await openUpload(berta, 5);
    expect(await upload(server, berta, 'x')).toMatchObject(FULL);
    first.write('hello');
    expect((await first.response()).status).toBe(201);
  });
});
