import { createHash, randomUUID } from 'node:crypto';
import { expect } from '@jest/globals';
import type { AccountId, ConversationId, HookId, Rev, Seq } from '../../src/model/ids.ts';
import { insertAccount } from '../../src/storage/accounts/accounts.ts';
import { Connection, type ConnectionTarget, type Sql, type Transaction } from '../../src/storage/db/connection.ts';
import { lockGroup } from '../../src/storage/groups/groups.ts';
import { insertHook, type NewHook } from '../../src/storage/hooks/hooks.ts';
import { insertIntegration } from '../../src/storage/groups/integrations.ts';
import { deleteMember } from '../../src/storage/groups/members.ts';
import { insertNotice } from '../../src/storage/messages/notices.ts';
import type { MessageLogOptions } from '../../src/storage/messages/message-log.ts';
import type { Post } from '../../src/storage/messages/write-posts.ts';
import { packSettlements } from '../../src/storage/hooks/settlement-columns.ts';
import type { Settlement } from '../../src/storage/hooks/settlement.ts';
import { writeSettlements as writePacked } from '../../src/storage/hooks/write-settlements.ts';
import type { TestDatabase } from '../support/database.ts';

/** The fields of a settlement (record of deliveries) for a hook that never failed. */
export const UNTROUBLED = {
  failures: 0,
  failingSince: null,
  nextAttemptAt: null,
  rejections: 0,
  batchLastSeq: null,
  unbatchedUntil: null,
  eventCursor: null,
  batchLastRev: null,
  unbatchedUntilRev: null,
  retries: [],
} as const;

export interface StoredGroup {
  readonly id: ConversationId;
  readonly accountId: AccountId;
  readonly tokenHash: string;
}

export const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

/** Inserts groups with their integrations into the database. */
export async function makeGroups(database: TestDatabase, count: number): Promise<StoredGroup[]> {
  return database.query(async (sql) => sql.begin((tx) => insertGroups(tx, count)));
}

async function insertGroups(tx: Transaction, count: number): Promise<StoredGroup[]> {
  const groups: StoredGroup[] = [];
  for (let index = 0; index < count; index += 1) {
    // This uses plain SQL, which also works on the schemas of older versions. They lack columns of today's groups.
    const [row] = await tx<{ id: ConversationId }[]>`
      insert into conversation (kind, title) values ('group', ${`Group ${index}`}) returning id`;
    const { id } = row!;
    await tx`insert into conversation_head (conversation_id) values (${id})`;
    const accountId = await insertAccount(tx, { kind: 'webhook', nick: null, name: `Sender ${index}`, role: 'user' });
    const tokenHash = sha256(randomUUID());
    await insertIntegration(tx, { conversationId: id, accountId, token: { hash: tokenHash, sealed: '-' } });
    groups.push({ id, accountId, tokenHash });
  }
  return groups;
}

/** Inserts people with these nicks as members of the group. */
export async function makeMembers(
  database: TestDatabase,
  group: StoredGroup,
  nicks: readonly string[],
): Promise<AccountId[]> {
  return database.query(async (sql) => {
    const ids: AccountId[] = [];
    for (const nick of nicks) {
      const id = await insertAccount(sql, { kind: 'user', nick, name: nick, role: 'user' });
      await sql`
        insert into membership (conversation_id, account_id, role) values (${group.id}, ${id}, 'member')`;
      ids.push(id);
    }
    return ids;
  });
}

/**
 * Ends memberships as the server does: with a notice, while the lock of the head is held. Resolves with the revs of the
 * notices.
 */
export async function removeMembers(
  database: TestDatabase,
  group: StoredGroup,
  accounts: readonly AccountId[],
): Promise<Rev[]> {
  return database.query(async (sql) => {
    const revs: Rev[] = [];
    for (const accountId of accounts) {
      const rev = await sql.begin(async (tx) => {
        await lockGroup(tx, group.id);
        await deleteMember(tx, { conversationId: group.id, accountId });
        return insertNotice(tx, { conversationId: group.id, kind: 'removed', details: { account: accountId } });
      });
      revs.push(rev);
    }
    return revs;
  });
}

export function post(group: StoredGroup, text: string, changes: Partial<Post> = {}): Post {
  return {
    conversationId: group.id,
    admission: group.tokenHash,
    senderId: group.accountId,
    text,
    label: null,
    iconUrl: null,
    hops: 0,
    attachments: [],
    cardsJson: null,
    key: null,
    bodyHash: null,
    ...changes,
  };
}

export function keyedPost(group: StoredGroup, key: string, text: string): Post {
  return post(group, text, { key, bodyHash: sha256(text) });
}

export function logOptions(changes: Partial<MessageLogOptions> = {}): MessageLogOptions {
  const bounds = {
    maxUnansweredPosts: 5_000,
    maxUnansweredBytes: 64 * 1024 * 1024,
    maxFlushPosts: 500,
    maxFlushBytes: 4 * 1024 * 1024,
  };
  return { ...bounds, maxQueueWaitMs: 5_000, onCommitted: () => {}, ...changes };
}

export interface StoredMessage {
  readonly group: ConversationId;
  readonly seq: Seq;
  readonly text: string;
}

/**
 * Reads every message, in order. Checks the invariants of a message log without edits:
 * - seq has no gaps from 1 to the counter in the head; rev has none if messages and notices are taken together.
 * - Times never run backwards.
 */
export async function readWholeLog(database: TestDatabase): Promise<StoredMessage[]> {
  return database.query(async (sql) => {
    const wrong = await sql`
      select h.conversation_id from conversation_head h
      left join (
        select conversation_id, seq, rev from message union all select conversation_id, null, rev from notice
      ) m on m.conversation_id = h.conversation_id
      group by h.conversation_id
      having count(m.seq) <> h.last_seq or coalesce(max(m.seq), 0) <> h.last_seq or coalesce(min(m.seq), 1) <> 1
        or coalesce(max(m.rev), 0) <> h.last_rev or coalesce(min(m.rev), 1) <> 1 or count(distinct m.rev) <> h.last_rev`;
    expect([...wrong]).toEqual([]);
    const backwards = await sql`
      select 1 from (
        select sent_at < lag(sent_at) over (partition by conversation_id order by seq) as earlier from message
      ) m where m.earlier`;
    expect([...backwards]).toEqual([]);
    const rows = await sql<StoredMessage[]>`
      select conversation_id as group, seq, text from message order by conversation_id, seq`;
    return [...rows];
  });
}

/** An open transaction on a connection of its own. */
export interface Held {
  /** Commits the transaction. */
  release(): Promise<void>;
}

/** Runs `work` in a transaction that stays open until `release`. */
export async function holdOpen(target: ConnectionTarget, work: (tx: Transaction) => Promise<unknown>): Promise<Held> {
  const connection = new Connection(target, 'test lock');
  const begun = Promise.withResolvers<void>();
  const end = Promise.withResolvers<void>();
  const done = connection.run(
    (sql) =>
      sql.begin(async (tx) => {
        await work(tx);
        begun.resolve();
        await end.promise;
      }),
    60_000,
  );
  await Promise.race([begun.promise, done]);
  return {
    release: async () => {
      end.resolve();
      await done;
      connection.close();
    },
  };
}

export const lockHead = (target: ConnectionTarget, id: ConversationId): Promise<Held> =>
  holdOpen(target, (tx) => tx`select from conversation_head where conversation_id = ${id} for update`);

/** Repeats a query until its answer is true; only the timeout of the test ends it. */
export async function until(database: TestDatabase, ask: (sql: Sql) => Promise<boolean>): Promise<void> {
  await database.query(async (sql) => {
    // The round trip gives the tested code a turn of the event loop, even if `ask` answers at once.
    while (!(await ask(sql))) await sql`select 1`;
  });
}

/** Whether `count` sessions of Klatch with this name wait for a lock. */
export async function isWaiting(sql: Sql, name: string, count = 1): Promise<boolean> {
  const rows = await sql`
    select from pg_stat_activity where datname = current_database() and application_name = ${`klatch ${name}`}
      and wait_event_type = 'Lock'`;
  return rows.length === count;
}

/**
 * Ends the sessions with this name and waits until they are gone. Otherwise a session of a killed server that waits for
 * a lock would still do its work when it gets the lock.
 */
export async function endSessions(database: TestDatabase, name: string): Promise<void> {
  await database.query(
    (sql) => sql`
      select pg_terminate_backend(pid, 10000) from pg_stat_activity
      where datname = current_database() and application_name = ${`klatch ${name}`}`,
  );
}

/** Writes settlements as the settlement thread does; returns the hooks that accepted theirs. */
export async function settle(sql: Sql, settlements: readonly Settlement[]): Promise<Set<HookId>> {
  return new Set(await writePacked(sql, packSettlements(settlements)));
}

let hooks = 0;

export async function makeHook(
  database: TestDatabase,
  group: StoredGroup,
  changes: Partial<NewHook> = {},
): Promise<HookId> {
  hooks += 1;
  const hook: NewHook = {
    conversationId: group.id,
    url: `http://127.0.0.1/${hooks}`,
    description: null,
    order: 'strict',
    batch: 1,
    signature: 'v1',
    format: 'klatch',
    skip: [],
    triggers: [],
    maxAgeS: null,
    events: [],
    secretSealed: '-',
    startAfterSeq: 0 as Seq,
    startAfterRev: 0 as Rev,
    ...changes,
  };
  return database.query(async (sql) => sql.begin((tx) => insertHook(tx, hook)));
}
