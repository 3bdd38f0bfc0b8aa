import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { AccountId, ConversationId } from '../../../src/model/ids.ts';
import type { Database } from '../../../src/storage/database.ts';
import { lockGroup, setArchived } from '../../../src/storage/groups/groups.ts';
import { MessageLog } from '../../../src/storage/messages/message-log.ts';
import type { Post } from '../../../src/storage/messages/write-posts.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import {
  holdOpen,
  isWaiting,
  lockHead,
  logOptions,
  makeGroups,
  makeMembers,
  post,
  readWholeLog,
  until,
  type StoredGroup,
} from '../fixture.ts';

// These time-outs are longer than any test: a lock time-out would end the waits that the tests arrange.
const PATIENT = { lockTimeoutMs: 600_000, flushTimeoutMs: 600_000, databaseCallTimeoutMs: 600_000 };

let database: TestDatabase;
let open: Database;
let log: MessageLog;
beforeEach(async () => {
  database = await createTestDatabase();
  open = database.open(PATIENT);
  log = new MessageLog(open.intake, logOptions());
});
afterEach(async () => {
  await log.stop();
  await database.drop();
});

/** Two forms of a post: the short statement writes the first, the general statement the second. */
const forms: [string, (text: string) => Partial<Post>][] = [
  ['without a key', () => ({})],
  ['with a key', (text) => ({ key: text, bodyHash: text })],
];

/** The groups whose heads another session can lock at this moment. */
async function unlocked(groups: readonly StoredGroup[]): Promise<ConversationId[]> {
  const ids = groups.map(({ id }) => id);
  const rows = await database.query(
    (sql) => sql<{ id: ConversationId }[]>`
      select conversation_id as id from conversation_head where conversation_id = any(${ids}::bigint[])
      for update skip locked`,
  );
  return rows.map(({ id }) => id).sort((a, b) => a - b);
}

describe.each(forms)('posts %s', (_name, form) => {
  test('that wait while their group is archived are refused', async () => {
    const [group, other] = (await makeGroups(database, 2)) as [StoredGroup, StoredGroup];
    const archiving = await holdOpen(database.target, async (tx) => {
      await lockGroup(tx, group.id);
      await setArchived(tx, group.id, true);
    });
    const answers = [group, other].map((each) => log.append(post(each, 'late', form('late'))));
    await until(database, (sql) => isWaiting(sql, 'intake'));
    await archiving.release();
    expect(await Promise.all(answers)).toEqual([{ outcome: 'refused' }, { outcome: 'new', seq: 1, logEpoch: 0 }]);
    expect(await readWholeLog(database)).toEqual([{ group: other.id, seq: 1, text: 'late' }]);
  });

  test('lock the heads of their conversations by number, whatever order they came in', async () => {
    const groups = await makeGroups(database, 4);
    const [lowest, ...others] = groups as [StoredGroup, ...StoredGroup[]];
    // The update moves the row behind the others in the table. So neither the posts nor the rows are ordered by number.
    await database.query(
      (sql) => sql`update conversation_head set last_at = last_at where conversation_id = ${lowest.id}`,
    );
    const lock = await lockHead(database.target, lowest.id);
    const answers = groups.toReversed().map((group) => log.append(post(group, 'a', form('a'))));
    await until(database, (sql) => isWaiting(sql, 'intake'));
    const free = await unlocked(groups);
    await lock.release();
    expect(await Promise.all(answers)).toEqual(groups.map(() => ({ outcome: 'new', seq: 1, logEpoch: 0 })));
    // The flush has locked none of the other heads yet. Heads that were locked before the lowest one could deadlock
    // with a flush that locks in the order of numbers.
    expect(free).toEqual(others.map(({ id }) => id));
  });

  test('are never timed before the message above them, though the clock was set back', async () => {
    const [group] = (await makeGroups(database, 1)) as [StoredGroup];
    await log.append(post(group, 'one'));
    await database.query(async (sql) => {
      await sql`update message set sent_at = now() + interval '1 hour'`;
      await sql`update conversation_head set last_at = (select sent_at from message)`;
    });
    for (const text of ['two', 'three']) await log.append(post(group, text, form(text)));
    expect(await readWholeLog(database)).toHaveLength(3);
    const [times] = await database.query(
      (sql) => sql`select count(distinct sent_at)::int as count, min(sent_at) > now() as ahead from message`,
    );
    expect(times).toEqual({ count: 1, ahead: true });
  });
});

test('flushes of two logs over the same conversations in opposite orders never fail', async () => {
  const groups = await makeGroups(database, 6);
  const other = new MessageLog(database.open(PATIENT).intake, logOptions());
  const keepPosting = async (to: MessageLog, order: readonly StoredGroup[]): Promise<void> => {
    for (let i = 0; i < 40; i += 1) {
      const [, form] = forms[i % 2]!;
      await Promise.all(order.map((group) => to.append(post(group, 'a', form(`${order[0]!.id} ${i}`)))));
    }
  };
  await Promise.all([keepPosting(log, groups), keepPosting(other, groups.toReversed())]);
  await other.stop();
  // The answers would not show a deadlock, since the log repeats a flush at once after one. The counters would.
  expect([log.counts.failedCommits, other.counts.failedCommits]).toEqual([0, 0]);
  expect(await readWholeLog(database)).toHaveLength(2 * 40 * 6);
});

test('several keyed posts of a member in one flush move the read position to the last of them', async () => {
  const [group] = (await makeGroups(database, 1)) as [StoredGroup];
  const [alice, bob] = (await makeMembers(database, group, ['alice', 'bob'])) as [AccountId, AccountId];
  const by = (senderId: AccountId, key: string): Post =>
    post(group, key, { admission: null, senderId, key, bodyHash: key });
  const posts = [by(alice, 'a'), by(alice, 'b'), by(bob, 'c'), by(alice, 'd')];
  const answers = await Promise.all(posts.map((each) => log.append(each)));
  expect(answers).toEqual([1, 2, 3, 4].map((seq) => ({ outcome: 'new', seq, logEpoch: 0 })));
  expect(log.counts.commits).toBe(1);
  const positions = await database.query(
    (sql) => sql`select account_id as id, read_seq as seq from membership order by account_id`,
  );
  expect([...positions]).toEqual([
    { id: alice, seq: 4 },
    { id: bob, seq: 3 },
  ]);
});
