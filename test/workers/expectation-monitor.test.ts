import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { postJson, TestServer, type TestGroup } from '../support/server.ts';
import { lockHead } from '../storage/fixture.ts';
import type { ConversationId } from '../../src/model/ids.ts';
import {
  HOUR_MS,
  saidLines,
  saidLinesOnceThereAre,
  MINUTE_MS,
  momentOfLastPost,
  passOpenTime,
  readIntakeClock,
} from './expectation-fixture.ts';

let database: TestDatabase;
let one: TestServer;
let other: TestServer;
let group: TestGroup;

beforeAll(async () => {
  database = await createTestDatabase();
  one = await TestServer.start({}, { database });
  other = await TestServer.start({}, { database });
});
afterAll(async () => {
  await one.stop();
  await other.stop();
  await database.drop();
});
beforeEach(async () => {
  await database.query((sql) => sql`delete from expectation`);
  group = await one.createGroup();
});

const post = async (body: object, { server = one, to = group } = {}): Promise<void> => {
  const { status } = await postJson(`${server.url}/v1/webhooks/${to.token}`, body);
  expect(status).toBe(200);
};
const expectOf = (key: string, within: string, to = group): Promise<{ changed: boolean }> =>
  one.operate('expectations.set', { group: to.id, key, within });
/** Resolves after a round of the monitor that began after this call: the round posts a message into another group. */
async function roundsWereDone(): Promise<void> {
  const marker = await one.createGroup('Marker');
  await expectOf('marker', '1m', marker);
  await database.query((sql) => sql`update expectation set due_ms = 0 where conversation_id = ${marker.id}`);
  await saidLinesOnceThereAre(database, marker, 1);
}

describe('a post that does not come', () => {
  test('is said once by two servers, and once when it comes again', async () => {
    await post({ text: 'done', key: 'backup', expect: '26h' });
    const since = await momentOfLastPost(database, group, 'backup');
    await passOpenTime(database, 26 * HOUR_MS + MINUTE_MS);
    const overdue = `🔴 nothing from backup since ${since} (expected every 26h)`;
    expect(await saidLinesOnceThereAre(database, group, 1)).toEqual([overdue]);
    await passOpenTime(database, 100 * HOUR_MS);
    await roundsWereDone();
    await post({ text: 'done', key: 'backup' }, { server: other });
    await post({ text: 'done', key: 'backup' });
    expect(await saidLinesOnceThereAre(database, group, 2)).toEqual([overdue, '🟢 backup is back']);
    await roundsWereDone();
    expect(await saidLines(database, group)).toHaveLength(2);
  });

  test('is said by the webhook of the group, as a message like others', async () => {
    await post({ text: 'done', key: 'backup', expect: '1h' });
    await passOpenTime(database, 2 * HOUR_MS);
    await saidLinesOnceThereAre(database, group, 1);
    const senders = await database.query(
      (sql) => sql`
        select m.seq, m.rev, m.sender_id = i.account_id as webhook from message m
        join integration i on i.conversation_id = m.conversation_id where m.conversation_id = ${group.id} and m.seq = 2`,
    );
    expect([...senders]).toEqual([{ seq: 2, rev: 3, webhook: true }]);
  });

  test('is said also in a group that has a secret for signatures', async () => {
    await one.operate('groups.set-incoming-secret', { group: group.id });
    await post({ text: 'done', key: 'backup', expect: '1h' });
    await passOpenTime(database, 2 * HOUR_MS);
    expect(await saidLinesOnceThereAre(database, group, 1)).toHaveLength(1);
  });

  test('is not said while posts with its key come, whatever else they say', async () => {
    await post({ text: 'done', key: 'backup', expect: '1h' });
    await passOpenTime(database, HOUR_MS - MINUTE_MS);
    await post({ text: 'disk full', key: 'backup', state: 'firing' });
    await passOpenTime(database, HOUR_MS - MINUTE_MS);
    // This post does not change the state of the alert, and so adds no message.
    await post({ text: 'disk full', key: 'backup', state: 'firing' });
    await passOpenTime(database, HOUR_MS - MINUTE_MS);
    await roundsWereDone();
    expect(await saidLines(database, group)).toEqual([]);
    await passOpenTime(database, 2 * MINUTE_MS);
    expect(await saidLinesOnceThereAre(database, group, 1)).toHaveLength(1);
  });

  test('is said although posts of other keys and groups, and posts without a key, come', async () => {
    const neighbour = await one.createGroup('Neighbour');
    await post({ text: 'done', key: 'backup', expect: '1h' });
    await passOpenTime(database, HOUR_MS - MINUTE_MS);
    await post({ text: 'done', key: 'Backup' });
    await post({ text: 'done' });
    await post({ text: 'done', key: 'backup' }, { to: neighbour });
    await passOpenTime(database, 2 * MINUTE_MS);
    expect(await saidLinesOnceThereAre(database, group, 1)).toHaveLength(1);
  });

  test('is said once though all servers are started again, before and after', async () => {
    await post({ text: 'done', key: 'backup', expect: '1h' });
    await one.restart();
    await passOpenTime(database, 2 * HOUR_MS);
    await saidLinesOnceThereAre(database, group, 1);
    await Promise.all([one.restart(), other.restart()]);
    await roundsWereDone();
    expect(await saidLines(database, group)).toHaveLength(1);
  });

  test('is not said to an archived group; when it is open again it begins to wait', async () => {
    await expectOf('backup', '1h');
    await one.operate('groups.archive', { group: group.id });
    await passOpenTime(database, 2 * HOUR_MS);
    await roundsWereDone();
    await one.operate('groups.unarchive', { group: group.id });
    await roundsWereDone();
    expect(await saidLines(database, group)).toEqual([]);
    await passOpenTime(database, 2 * HOUR_MS);
    expect(await saidLinesOnceThereAre(database, group, 1)).toHaveLength(1);
  });

  test('is said in other groups while the head of one is locked, and there behind the lock', async () => {
    const neighbour = await one.createGroup('Neighbour');
    for (const to of [group, neighbour]) await expectOf('backup', '1h', to);
    const lock = await lockHead(database.target, group.id as ConversationId);
    await passOpenTime(database, 2 * HOUR_MS);
    expect(await saidLinesOnceThereAre(database, neighbour, 1)).toHaveLength(1);
    await lock.release();
    expect(await saidLinesOnceThereAre(database, group, 1)).toHaveLength(1);
  });

  test('mentions nobody by its key', async () => {
    await expectOf('@bob', '1h');
    await passOpenTime(database, 2 * HOUR_MS);
    const [line] = await saidLinesOnceThereAre(database, group, 1);
    expect(line).toContain('nothing from @\u2060bob since');
  });
});

describe('the time that counts', () => {
  test('is that in which a server can take posts, once for all of them', async () => {
    await expectOf('backup', '1h');
    const [before, beganAt] = [await readIntakeClock(database), performance.now()];
    const after = await eventually(
      () => readIntakeClock(database),
      (ms) => ms > before + 3_000,
    );
    // Both servers advance the clock of the time in which posts were accepted, in steps of up to 10 s. A step that the
    // test read may have begun before `beganAt`.
    expect(after - before).toBeLessThan(performance.now() - beganAt + 10_000);
  });

  test('leaves out days in which no server ran', async () => {
    await expectOf('backup', '1h');
    await Promise.all([one.restart(), other.restart()]);
    await database.query((sql) => sql`update intake_clock set advanced_at = clock_timestamp() - interval '3 days'`);
    const before = await readIntakeClock(database);
    const after = await eventually(
      () => readIntakeClock(database),
      (ms) => ms > before,
    );
    expect(after - before).toBeLessThanOrEqual(20_000);
    await roundsWereDone();
    expect(await saidLines(database, group)).toEqual([]);
  });
});

describe('klatch_expectations_overdue', () => {
  test('counts what is overdue in groups that are not archived', async () => {
    const measured = await TestServer.start({ metrics: { metricsEnabled: true } }, { database });
    try {
      const overdue = async (): Promise<string | undefined> =>
        /^klatch_expectations_overdue (\d+)$/m.exec(await (await fetch(measured.metricsUrl)).text())?.[1];
      for (const key of ['a', 'b']) await expectOf(key, '1h');
      await eventually(overdue, (count) => count === '0');
      await passOpenTime(database, 2 * HOUR_MS);
      await eventually(overdue, (count) => count === '2');
      await post({ text: 'done', key: 'a' });
      await eventually(overdue, (count) => count === '1');
      await one.operate('groups.archive', { group: group.id });
      await eventually(overdue, (count) => count === '0');
    } finally {
      await measured.stop();
    }
  });
});
