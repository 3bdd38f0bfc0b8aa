import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { AccountId, Rev, Seq } from '../../../src/model/ids.ts';
import type { Database } from '../../../src/storage/database.ts';
import { lockGroup } from '../../../src/storage/groups/groups.ts';
import { deleteMember } from '../../../src/storage/groups/members.ts';
import { MessageLog } from '../../../src/storage/messages/message-log.ts';
import type { Post } from '../../../src/storage/messages/write-posts.ts';
import { insertNotice } from '../../../src/storage/messages/notices.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import {
  holdOpen,
  isWaiting,
  logOptions,
  makeGroups,
  makeMembers,
  post,
  readWholeLog,
  removeMembers,
  until,
  type StoredGroup,
} from '../fixture.ts';

let test1: TestDatabase;
let database: Database;
let log: MessageLog;
let group: StoredGroup;
beforeEach(async () => {
  test1 = await createTestDatabase();
  // The time-outs are long, so that the test can observe the wait for a lock.
  database = test1.open({ lockTimeoutMs: 60_000, flushTimeoutMs: 60_000, databaseCallTimeoutMs: 60_000 });
  log = new MessageLog(database.intake, logOptions());
  [group] = (await makeGroups(test1, 1)) as [StoredGroup];
});
afterEach(async () => {
  await log.stop();
  await test1.drop();
});

/** Two forms of a member's post: the short statement writes the first, the general statement the second. */
const forms: [string, (text: string) => Partial<Post>][] = [
  ['without a key', () => ({})],
  ['with a key', (text) => ({ key: text, bodyHash: text })],
];

const by = (senderId: AccountId, text: string, more: Partial<Post> = {}): Post =>
  post(group, text, { admission: null, senderId, ...more });

const positions = (): Promise<Record<string, number>> =>
  test1.query(async (sql) => {
    const rows = await sql<{ nick: string; seq: number }[]>`
      select a.nick, m.read_seq as seq from membership m join account a on a.id = m.account_id order by a.nick`;
    return Object.fromEntries(rows.map(({ nick, seq }) => [nick, seq]));
  });

describe.each(forms)("a member's post %s", (_name, form) => {
  test('that waits for a removal is refused, for its snapshot still shows the member', async () => {
    const [alice] = (await makeMembers(test1, group, ['alice'])) as [AccountId];
    const removal = await holdOpen(test1.target, async (tx) => {
      await lockGroup(tx, group.id);
      await deleteMember(tx, { conversationId: group.id, accountId: alice });
      await insertNotice(tx, { conversationId: group.id, kind: 'removed', details: {} });
    });
    const posted = log.append(by(alice, 'late', form('late')));
    await until(test1, (sql) => isWaiting(sql, 'intake'));
    await removal.release();
    expect(await posted).toEqual({ outcome: 'refused' });
    expect(await readWholeLog(test1)).toEqual([]);
  });

  test('that waits for another change of the membership is written', async () => {
    const [alice] = (await makeMembers(test1, group, ['alice'])) as [AccountId];
    const reading = await holdOpen(
      test1.target,
      (tx) => tx`update membership set role = 'admin' where account_id = ${alice}`,
    );
    const posted = log.append(by(alice, 'hello', form('hello')));
    await until(test1, (sql) => isWaiting(sql, 'intake'));
    await reading.release();
    expect(await posted).toEqual({ outcome: 'new', seq: 1, logEpoch: 0 });
    expect(await positions()).toEqual({ alice: 1 });
  });

  test('moves the read position of its sender alone, and never back', async () => {
    const [alice] = (await makeMembers(test1, group, ['alice', 'bob'])) as [AccountId];
    await log.append(post(group, 'from outside'));
    await log.append(by(alice, 'one', form('one')));
    expect(await positions()).toEqual({ alice: 2, bob: 0 });
    await test1.query((sql) => sql`update membership set read_seq = 100 where account_id = ${alice}`);
    await log.append(by(alice, 'two', form('two')));
    expect(await positions()).toEqual({ alice: 100, bob: 0 });
  });
});

test('nobody posts behind the notice of a removal, however the two meet', async () => {
  const members = await makeMembers(
    test1,
    group,
    Array.from({ length: 40 }, (_, i) => `m${i}`),
  );
  const others = [database.intake, test1.open().intake].map((pool) => new MessageLog(pool, logOptions()));
  const left = new Map<AccountId, Rev>();
  let refused = 0;
  const posting = members.map(async (account, index) => {
    const own = others[index % 2]!;
    for (let i = 0; ; i += 1) {
      const [, form] = forms[(i + index) % 2]!;
      const posted = await own.append(by(account, `${account} ${i}`, form(`${account} ${i}`)));
      if (posted.outcome !== 'refused') continue;
      refused += 1;
      return;
    }
  });
  for (const account of members) left.set(account, (await removeMembers(test1, group, [account]))[0]!);
  await Promise.all(posting);
  await Promise.all(others.map((each) => each.stop()));
  expect(refused).toBe(40);
  await readWholeLog(test1);
  const last = await test1.query(
    (sql) => sql<{ sender: AccountId; rev: Rev; seq: Seq }[]>`
      select sender_id as sender, max(rev) as rev, max(seq) as seq from message group by sender_id`,
  );
  // `last` has no row for a member who was removed before that member's first post was written.
  expect(last.length).toBeGreaterThan(0);
  expect(last.filter(({ sender, rev }) => rev > left.get(sender)!)).toEqual([]);
});
