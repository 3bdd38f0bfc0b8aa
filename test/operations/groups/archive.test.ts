import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { Receiver } from '../../support/receiver.ts';
import { postJson, TestServer, type TestGroup } from '../../support/server.ts';

const changes = { delivery: { retryDelaysMs: [50] } };

describe('an archived group', () => {
  let database: TestDatabase;
  let first: TestServer;
  let second: TestServer;

  beforeAll(async () => {
    database = await createTestDatabase();
    first = await TestServer.start(changes, { database });
    second = await TestServer.start(changes, { database });
  });
  afterAll(async () => {
    await first.stop();
    await second.stop();
    await database.drop();
  });

  const post = (server: TestServer, { token }: TestGroup, text: string) =>
    postJson(`${server.url}/v1/webhooks/${token}`, { text });

  test('answers 410 on every server, also where its token is remembered, until it is taken back', async () => {
    const group = await first.createGroup();
    expect((await post(first, group, 'before')).status).toBe(200);
    expect((await post(second, group, 'before')).status).toBe(200);
    expect(await first.operate('groups.archive', { group: group.id })).toEqual({
      group: group.id,
      archived: true,
      changed: true,
    });
    for (const server of [first, second, first, second]) {
      const { status, body } = await post(server, group, 'archived');
      expect({ status, body }).toEqual({ status: 410, body: { message: 'This group is archived' } });
    }
    expect(await second.operate('groups.unarchive', { group: group.id })).toMatchObject({
      archived: false,
      changed: true,
    });
    expect((await post(first, group, 'after')).body).toMatchObject({ id: `${group.id}:3` });
    expect((await post(second, group, 'after')).body).toMatchObject({ id: `${group.id}:4` });
  });

  test('says when it was archived already, and shows it in the list and in its information', async () => {
    const group = await first.createGroup();
    await first.operate('groups.archive', { group: group.id });
    expect(await first.operate('groups.archive', { group: group.id })).toMatchObject({ changed: false });
    expect(await first.operate('groups.info', { group: group.id })).toMatchObject({ archived: true });
    const ids = async (archived: boolean): Promise<number[]> => {
      const { groups } = await first.operate<{ groups: { id: number }[] }>('groups.list-all', { archived });
      return groups.map(({ id }) => id);
    };
    expect(await ids(true)).toContain(group.id);
    expect(await ids(false)).not.toContain(group.id);
    await first.operate('groups.unarchive', { group: group.id });
    expect(await ids(false)).toContain(group.id);
    expect(await first.operate('groups.unarchive', { group: group.id })).toMatchObject({ changed: false });
  });

  test('still forwards what was posted before', async () => {
    let status = 503;
    const receiver = await Receiver.start(() => status);
    try {
      const group = await first.createGroup();
      await postJson(`${group.webhook}/reverse`, { url: receiver.url() });
      await post(first, group, 'kept');
      await receiver.received(1);
      await first.operate('groups.archive', { group: group.id });
      status = 200;
      const arrivals = await receiver.received(receiver.arrivals.length + 1);
      expect(arrivals.at(-1)!.body.data.message).toMatchObject({ seq: 1, text: 'kept' });
    } finally {
      await receiver.stop();
    }
  });

  test('that is not there is an error', async () => {
    await expect(first.operate('groups.archive', { group: 999_999 })).rejects.toThrow('There is no group 999999');
  });
});
