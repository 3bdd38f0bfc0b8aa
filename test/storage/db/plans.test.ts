import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { AccountId, ConversationId, HookId, Rev, Seq } from '../../../src/model/ids.ts';
import { readChanges } from '../../../src/storage/messages/changes.ts';
import { listAccounts, type AccountPageRequest } from '../../../src/storage/accounts/accounts.ts';
import type { Sql, Transaction } from '../../../src/storage/db/connection.ts';
import { listGroups } from '../../../src/storage/groups/groups.ts';
import { readLogPage, type LogPosition } from '../../../src/storage/hooks/delivery-log.ts';
import {
  applyHookChanges,
  lockHook,
  redeliverFrom,
  redeliverSelectedUnlessTooMany,
  skipBacklog,
} from '../../../src/storage/hooks/hook-control.ts';
import { firstSeqSince } from '../../../src/storage/messages/first-seq-since.ts';
import { claimPing } from '../../../src/storage/hooks/hook-ping.ts';
import type { HookReference, LockedHook } from '../../../src/storage/hooks/hook-control.ts';
import { findHookDetails, listHooks, type HookPageRequest } from '../../../src/storage/hooks/hook-list.ts';
import { readDeliveryEvents } from '../../../src/storage/hooks/hook-events.ts';
import { findHooks } from '../../../src/storage/hooks/hooks.ts';
import { readHourlyRequests } from '../../../src/storage/hooks/hook-stats.ts';
import { countRecentPosts } from '../../../src/storage/groups/recent-posts.ts';
import { findIntegration } from '../../../src/storage/groups/integrations.ts';
import {
  conversationsWithPendingEvents,
  lanesOfConversations,
  PARTITIONS,
  conversationsWithPendingMessages,
  readDeliveryMessages,
} from '../../../src/storage/hooks/lanes.ts';
import { eraseMessage, isBlockedByPeer, readHistory } from '../../../src/storage/messages/messages.ts';
import { readNoticesBetween } from '../../../src/storage/messages/notice-history.ts';
import { advanceReadPosition } from '../../../src/storage/messages/read-positions.ts';
import { readAlert } from '../../../src/storage/messages/alerts.ts';
import { writePosts, type Post } from '../../../src/storage/messages/write-posts.ts';
import { indexNext } from '../../../src/storage/messages/indexing.ts';
import { searchMessagesByWords } from '../../../src/storage/messages/search.ts';
import { Pool } from '../../../src/storage/db/pool.ts';
import type { Settlement } from '../../../src/storage/hooks/settlement.ts';
import { settle, UNTROUBLED } from '../fixture.ts';
import { FILL, GROUPS, MESSAGES } from './large-installation.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';

let database: TestDatabase;
let pool: Pool;

/** Disables autovacuum on all tables, and on each partition of the partitioned ones. */
const STILL = `
  do $$ declare name text; begin
    for name in select oid::regclass from pg_class where relkind = 'r' and relnamespace = current_schema()::regnamespace loop
      execute 'alter table ' || name || ' set (autovacuum_enabled = false)';
    end loop;
  end $$`;

beforeAll(async () => {
  database = await createTestDatabase();
  await database.query((sql) => sql.unsafe(FILL));
  // Autovacuum would disturb the counts: to summarise a BRIN index, it scans new blocks of the table.
  await database.query((sql) => sql.unsafe(STILL));
  await database.query((sql) => sql`analyze`);
  pool = new Pool(database.target, { name: 'plans', maxConnections: 1, maxWaitingCalls: 1, timeoutMs: 20_000 });
});
afterAll(async () => {
  pool.stop();
  await database.drop();
});

/** By name of a large table: the number of its rows that sequential scans have read so far. */
async function scanned(sql: Sql): Promise<Record<string, number>> {
  await sql`select pg_stat_force_next_flush()`;
  const rows = await sql<{ name: string; rows: number }[]>`
    select relname as name, seq_tup_read as rows from pg_stat_user_tables
    where relname in ('account', 'conversation', 'conversation_head', 'integration', 'membership', 'message', 'idempotency_key', 'alert', 'reverse_hook',
      'delivery_retry', 'hook_event', 'notice', 'search_index_progress', 'file', 'search_index', 'mention', 'hook_stats')
      or relname like 'delivery_attempt%'`;
  return Object.fromEntries(rows.map(({ name, rows: read }) => [name, read]));
}

const conversation = (index: number): ConversationId => (((index * 37) % GROUPS) + 1) as ConversationId;

const posts = (count: number, keyed: boolean): Post[] =>
  Array.from({ length: count }, (_, i) => ({
    conversationId: conversation(i),
    admission: `hash ${conversation(i)}`,
    senderId: conversation(i) as number as AccountId,
    text: 'text',
    label: null,
    iconUrl: null,
    hops: 0,
    attachments: [],
    cardsJson: null,
    key: keyed ? `key ${i}` : null,
    bodyHash: keyed ? '-' : null,
  }));

/** Posts of which half attach a file of their sender. */
const filePosts = (count: number, keyed: boolean): Post[] =>
  posts(count, keyed).map((each, i) => ({
    ...each,
    attachments: i % 2 === 0 ? [`${each.senderId}f`.padStart(22, '0')] : [],
    key: each.key === null ? null : `file ${each.key}`,
  }));

/** Posts that change alerts. Every third begins one; the others edit its message, and half of these also post. */
const alertPosts = (count: number, keyed: boolean): Post[] =>
  posts(count, keyed).map((each, i) => ({
    ...each,
    key: each.key === null ? null : `alert ${each.key}`,
    alert: {
      source: 'test',
      key: i % 3 === 0 ? 'new' : 'alert 2',
      decidedFrom: i % 3 === 0 ? null : { version: 1, seq: 2 as Seq },
      editedText: i % 3 === 0 ? null : 'edited',
      editedCardsJson: null,
      newMessage: i % 3 === 0 ? 'shows-alert' : i % 2 === 0 ? 'follow-up' : 'none',
      state: { state: 'firing', since: new Date(), senderAlerts: [] },
    },
  }));

/** Like `posts`, by members. The account id of a group's member is that of its integration plus a constant. */
const memberPosts = (count: number, keyed: boolean): Post[] =>
  posts(count, keyed).map((each) => ({
    ...each,
    admission: null,
    senderId: (GROUPS + each.conversationId) as AccountId,
    key: each.key === null ? null : `member ${each.key}`,
  }));

const member = (index: number): { conversationId: ConversationId; accountId: AccountId } => ({
  conversationId: conversation(index),
  accountId: (GROUPS + conversation(index)) as AccountId,
});

const settlements: Settlement[] = Array.from({ length: 50 }, (_, i) => ({
  hookId: conversation(i) as number as HookId,
  generation: 0,
  epoch: 0,
  cursor: MESSAGES as Seq,
  ...UNTROUBLED,
  attempts: [],
}));

const allHooks: HookPageRequest = {
  after: 0,
  limit: 101,
  conversationId: null,
  manager: null,
  removed: false,
  stateCriteria: null,
};
const allAccounts: AccountPageRequest = { after: '', limit: 101, role: null, conversationId: null };

const hookOf = (index: number): HookReference => ({
  conversationId: conversation(index),
  hookId: conversation(index) as number as HookId,
});
const logPlace: LogPosition = { at: new Date(), firstSeq: 3 as Seq, rev: 0, attempt: 1 };

/** Works on a locked hook, as a control write does. Not for hooks with settlements: it raises the generation. */
const locked =
  (index: number, work: (tx: Transaction, hook: LockedHook) => Promise<unknown>) =>
  (sql: Sql): Promise<unknown> =>
    sql.begin(async (tx) => work(tx, (await lockHook(tx, hookOf(index)))!));

const statements: [string, (sql: Sql) => Promise<unknown>][] = [
  ['one post', (sql) => writePosts(sql, posts(1, false))],
  ['50 posts', (sql) => writePosts(sql, posts(50, false))],
  ['50 posts with keys', (sql) => writePosts(sql, posts(50, true))],
  ['a post with a file', (sql) => writePosts(sql, filePosts(1, false))],
  ['50 posts of which some have files, with keys', (sql) => writePosts(sql, filePosts(50, true))],
  ['a post that changes an alert', (sql) => writePosts(sql, alertPosts(1, false))],
  ['50 posts that change alerts, with keys', (sql) => writePosts(sql, alertPosts(50, true))],
  ['the row of an alert', (sql) => readAlert(sql, { conversationId: conversation(5), source: 'test', key: 'alert 3' })],
  ['a post of a member', (sql) => writePosts(sql, memberPosts(1, false))],
  ['50 posts of members', (sql) => writePosts(sql, memberPosts(50, false))],
  ['50 posts of members with keys', (sql) => writePosts(sql, memberPosts(50, true))],
  [
    '50 posts of members and of integrations',
    (sql) => writePosts(sql, [...memberPosts(25, true), ...posts(25, false)]),
  ],
  [
    'a page of changes',
    (sql) => readChanges(sql, { conversationId: conversation(5), afterRev: 2 as Rev, limit: 50, maxBytes: 1_000_000 }),
  ],
  [
    'a page of history',
    (sql) =>
      readHistory(sql, {
        conversationId: conversation(5),
        direction: 'before',
        seq: 4 as Seq,
        limit: 50,
        maxBytes: 1_000_000,
      }),
  ],
  ['notices', (sql) => readNoticesBetween(sql, { ...member(5), fromSeq: 0 as Seq, toSeq: 4 as Seq, limit: 9 })],
  ['a read position', (sql) => advanceReadPosition(sql, member(5), 3 as Seq)],
  ['a look for a block', (sql) => isBlockedByPeer(sql, member(5))],
  [
    'a deletion',
    (sql) =>
      sql.begin((tx) =>
        eraseMessage(tx, { conversationId: conversation(6), seq: 1 as Seq, actorId: 1 as AccountId, hops: 0 }),
      ),
  ],
  ['50 settlements', (sql) => settle(sql, settlements)],
  [
    '50 settlements with failures',
    (sql) =>
      settle(
        sql,
        settlements.map((s) => ({ ...s, failures: 1 })),
      ),
  ],
  [
    'the reading of 32 lanes',
    (sql) => {
      const positions = Array.from({ length: 32 }, (_, i) => ({
        conversationId: conversation(i),
        after: 2 as Seq,
        limit: 64,
      }));
      return readDeliveryMessages(sql, positions, 128 * 1024);
    },
  ],
  [
    'the events of 32 lanes',
    (sql) => {
      const positions = Array.from({ length: 32 }, (_, i) => ({ conversationId: conversation(i), afterRev: 1 as Rev }));
      return readDeliveryEvents(sql, positions, { limit: 64, bytes: 128 * 1024 });
    },
  ],
  [
    'the sweep for events',
    (sql) => {
      const page = { partitions: [1, 2, 3], after: 0, limit: 5_000 };
      return conversationsWithPendingEvents(sql, { ...page, onlyRecent: false });
    },
  ],
  [
    'the lanes of 50 conversations',
    (sql) =>
      lanesOfConversations(
        sql,
        posts(50, false).map((p) => p.conversationId),
      ),
  ],
  ['the look-up of a token', (sql) => findIntegration(sql, 'hash 77')],
  ['the hooks of a group', (sql) => findHooks(sql, conversation(5), null)],
  ['a page of all groups', (sql) => listGroups(sql, { after: 9_000, limit: 101, archived: null })],
  ['a page of all hooks', (sql) => listHooks(sql, { ...allHooks, after: 9_000 })],
  ["a page of one group's hooks", (sql) => listHooks(sql, { ...allHooks, conversationId: conversation(5) })],
  ['everything about a hook', (sql) => findHookDetails(sql, conversation(5))],
  ['the newest attempts of a hook', (sql) => readLogPage(sql, hookOf(5).hookId, { before: null, limit: 101 })],
  [
    'the hooks that an account manages',
    (sql) => listHooks(sql, { ...allHooks, manager: conversation(5) as number as AccountId }),
  ],
  ['the requests to hooks by hour', (sql) => readHourlyRequests(sql, [hookOf(5), hookOf(6)], new Date())],
  ['the recent posts of a group', (sql) => countRecentPosts(sql, conversation(5))],
  ['a page of the delivery log', (sql) => readLogPage(sql, hookOf(5).hookId, { before: logPlace, limit: 101 })],
  ['a ping', (sql) => claimPing(sql, hookOf(106), 5)],
  ['a pause', locked(107, (tx, hook) => applyHookChanges(tx, hook, { paused: true }))],
  ['a resumption', locked(108, (tx, hook) => applyHookChanges(tx, hook, { paused: false }))],
  ['a redelivery', locked(109, (tx, hook) => redeliverFrom(tx, hook, { seq: 4, since: null }))],
  [
    'a redelivery of single messages',
    locked(110, (tx, hook) => redeliverSelectedUnlessTooMany(tx, hook, [1 as Seq, 2 as Seq])),
  ],
  ['a skipped backlog', locked(111, (tx, hook) => skipBacklog(tx, { ...hook, cursor: 2 as Seq }))],
  [
    'the search for a time',
    (sql) =>
      firstSeqSince(sql, { ...hookOf(5), after: 0 as Seq, lastSeq: MESSAGES as Seq }, new Date(Date.now() - 1_000)),
  ],
  ['a page of all accounts', (sql) => listAccounts(sql, { ...allAccounts, after: 'nick 3' })],
  ["a page of one group's members", (sql) => listAccounts(sql, { ...allAccounts, conversationId: conversation(5) })],
];

describe.each(['auto', 'force_generic_plan'])('with many rows and plan_cache_mode %s', (mode) => {
  test.each(statements)('%s scans no table', async (_name, statement) => {
    await pool.run(async (sql) => {
      await sql.unsafe(`set plan_cache_mode = ${mode}`);
      const before = await scanned(sql);
      // From the sixth execution on, PostgreSQL may use a generic plan.
      for (let i = 0; i < 8; i += 1) await statement(sql);
      expect(await scanned(sql)).toEqual(before);
    });
  });
});

describe('of the search index and of searches', () => {
  const search = (text: string, account: number): Promise<unknown> =>
    searchMessagesByWords(pool, {
      text,
      accountId: account as AccountId,
      conversationId: null,
      before: null,
      limit: 20,
      maxBytes: 1_000_000,
    });
  test.each<[string, () => Promise<unknown>]>([
    ['a turn', () => indexNext(pool, conversation(7))],
    ['a search for a rare word', () => search('rare', GROUPS + 1_000)],
    ['a search for a common word', () => search('common', GROUPS + 20)],
    ['a search for a word that nothing has', () => search('absent', GROUPS + 20)],
  ])('%s scans no table', async (_name, run) => {
    const before = await pool.run(scanned);
    for (let i = 0; i < 8; i += 1) await run();
    expect(await pool.run(scanned)).toEqual(before);
  });
});

test('posts and settlements keep their updates in the page, whatever indexes are added', async () => {
  // Frees room in the pages: earlier tests have filled them, and transactions of other databases delay their pruning.
  await database.query((sql) => sql`vacuum conversation_head, reverse_hook`);
  await pool.run(async (sql) => {
    const updates = async (): Promise<{ name: string; all: number; hot: number }[]> => {
      await sql`select pg_stat_force_next_flush()`;
      return sql`
        select relname as name, n_tup_upd as all, n_tup_hot_upd as hot from pg_stat_user_tables
        where relname in ('conversation_head', 'reverse_hook') order by relname`;
    };
    const before = await updates();
    for (let i = 0; i < 5; i += 1) {
      await writePosts(sql, posts(50, false));
      await settle(sql, settlements);
    }
    const after = await updates();
    expect(after.map(({ name }) => name)).toEqual(['conversation_head', 'reverse_hook']);
    after.forEach(({ all, hot }, i) => {
      expect(all - before[i]!.all).toBe(250);
      // Updates are HOT: no changed column is in an index. A few may not be: an autovacuum can keep old versions.
      expect(hot - before[i]!.hot).toBeGreaterThan(150);
    });
  });
});

test('a sweep reads each head and hook once, however many pages it takes', async () => {
  await database.query(async (sql) => {
    await sql`update reverse_hook set cursor = 0`;
    await sql`vacuum (analyze)`;
    // This flush ends the count of the session's earlier reads, so that the count of the sweep excludes them.
    await sql`select pg_stat_force_next_flush()`;
  });
  const partitions = Array.from({ length: PARTITIONS }, (_, i) => i);
  const limit = GROUPS / 100;
  await pool.run(async (sql) => {
    const read = async (): Promise<number> => {
      await sql`select pg_stat_force_next_flush()`;
      const [row] = await sql<{ rows: number }[]>`
        select sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::bigint as rows from pg_stat_user_tables
        where relname in ('conversation_head', 'reverse_hook')`;
      return row!.rows;
    };
    await sql`set plan_cache_mode = auto`;
    const before = await read();
    let found = 0;
    for (let after = 0; ;) {
      const ids = await conversationsWithPendingMessages(sql, { partitions, after, limit, onlyRecent: false });
      if (ids.length === 0) break;
      found += ids.length;
      after = ids.at(-1)!;
    }
    expect(found).toBe(GROUPS);
    // Each page reads one more row, and the last page reads rows only to find that no more hooks have work.
    expect((await read()) - before).toBeLessThan(2.5 * GROUPS);
  });
});
