import { join } from 'node:path';
import postgres from 'postgres';
import { newHookSecret } from '../src/model/hook-secret.ts';
import { newIntegrationToken } from '../src/operations/core/access.ts';
import { Sealer } from '../src/storage/db/sealed.ts';
import type { TestGroup } from '../test/support/server.ts';
import { SECRET, type ServerProcess } from '../test/support/server-process.ts';

/** The number of rows with sealed values that this process makes and sends at a time. */
const PAGE = 10_000;
/** The number of rows of a log that one statement of the database makes. */
const LOG_PAGE = 100_000;
/**
 * The time between two messages of a group. The last message is at least a day old, so no sweep treats one as recent.
 */
const MESSAGE_EVERY = '3 days';

/**
 * The contents of an installation. All groups have the same number of messages. Hooks are idle: their cursor is the
 * last seq.
 */
export interface SeedOptions {
  readonly groups: number;
  readonly messagesPerGroup: number;
  /**
   * The number of hooks of each second group. The other groups have none, so that posts into them cause no delivery.
   */
  readonly hooksPerSecondGroup: number;
}

/** The disk space of one message, group or hook, in bytes, including indexes. */
export interface DiskBytes {
  readonly message: number;
  readonly group: number;
  readonly hook: number;
}

type Sql = postgres.Sql;

/**
 * Fills the database of a running server with rows as the server itself would have written them. Tokens and secrets are
 * sealed with its key, and heads agree with the log. The database is then vacuumed, analyzed and written to its files,
 * as that of a server that has run for long. Resolves with the groups that have no hooks.
 */
export async function seedDatabase(server: ServerProcess, options: SeedOptions): Promise<TestGroup[]> {
  return asSuperuser(server, async (sql) => {
    const ids = await sql.begin((tx) => insertGroups(tx, options));
    const tokens = await insertIntegrations(sql, ids);
    await insertMessages(sql, ids, options.messagesPerGroup);
    const hooked = ids.filter((_, index) => index % 2 === 1);
    await insertHooks(sql, hooked, options);
    await sql`vacuum (analyze)`;
    await sql`checkpoint`;
    return ids.flatMap((id, index) => {
      if (index % 2 === 1) return [];
      const token = tokens[index]!;
      return [{ id, token, webhook: `${server.url}/v1/webhooks/${token}` }];
    });
  });
}

/** Measures the disk space of the seed data: its tables, with their indexes and free space. */
export async function measureDisk(server: ServerProcess, options: SeedOptions): Promise<DiskBytes> {
  return asSuperuser(server, async (sql) => {
    const size = async (tables: readonly string[]): Promise<number> => {
      const [row] = await sql<{ bytes: string }[]>`
        select sum(pg_total_relation_size(name::regclass)) as bytes from unnest(${[...tables]}::text[]) as t(name)`;
      return Number(row!.bytes);
    };
    const { groups, messagesPerGroup, hooksPerSecondGroup } = options;
    const groupTables = ['conversation', 'conversation_head', 'integration', 'account', 'membership'];
    return {
      message: (await size(['message'])) / (groups * messagesPerGroup),
      group: (await size(groupTables)) / groups,
      hook: (await size(['reverse_hook'])) / ((groups / 2) * hooksPerSecondGroup),
    };
  });
}

/**
 * Writes messages into the empty log of a group. They are too old for any sweep to find: only a post wakes the lanes.
 */
export async function fillLog(server: ServerProcess, group: TestGroup, messages: number): Promise<void> {
  await asSuperuser(server, async (sql) => {
    for (let from = 0; from < messages; from += LOG_PAGE) {
      const to = Math.min(messages, from + LOG_PAGE);
      await sql`
        insert into message (conversation_id, seq, rev, sender_id, text, sent_at)
        select ${group.id}::bigint, n, n, i.account_id, 'message ' || n || ': load on web-1 is above its threshold',
          now() - interval '1 day'
        from generate_series(${from + 1}::bigint, ${to}::bigint) n
        join integration i on i.conversation_id = ${group.id}::bigint
        order by n`;
    }
    await sql`
      update conversation_head set last_seq = ${messages}, last_rev = ${messages}, last_at = now() - interval '1 day'
      where conversation_id = ${group.id}`;
    await sql`vacuum (analyze) message`;
    await sql`checkpoint`;
  });
}

/**
 * Appends this many messages to the log of each group, in one commit. The next post wakes the lanes, which then deliver
 * these messages too.
 */
export async function appendToLogs(server: ServerProcess, groups: readonly TestGroup[], count: number): Promise<void> {
  const ids = groups.map((group) => group.id);
  await asSuperuser(server, (sql) =>
    sql.begin(async (tx) => {
      const heads = await tx<{ id: string; last: string; rev: string }[]>`
        select conversation_id as id, last_seq as last, last_rev as rev from conversation_head
        where conversation_id = any(${ids}::bigint[]) order by conversation_id for update`;
      for (const { id, last, rev } of heads) {
        await tx`
          insert into message (conversation_id, seq, rev, sender_id, text, sent_at)
          select ${id}::bigint, ${last}::bigint + n, ${rev}::bigint + n, i.account_id,
            'message ' || n || ': load on web-1 is above its threshold', now()
          from generate_series(1, ${count}::int) n join integration i on i.conversation_id = ${id}::bigint
          order by n`;
      }
      await tx`
        update conversation_head set last_seq = last_seq + ${count}, last_rev = last_rev + ${count}
        where conversation_id = any(${ids}::bigint[])`;
    }),
  );
}

export async function asSuperuser<T>(server: ServerProcess, work: (sql: Sql) => Promise<T>): Promise<T> {
  const host = join(server.dataDir, 'postgresql.run');
  const sql = postgres({ host, port: 5432, database: 'klatch', user: 'postgres', max: 1, onnotice: () => {} });
  try {
    return await work(sql);
  } finally {
    await sql.end({ timeout: 5 });
  }
}

/** Inserts groups with one owner for all of them; returns their ids. */
async function insertGroups(tx: postgres.TransactionSql, { groups, messagesPerGroup }: SeedOptions): Promise<number[]> {
  const [owner] = await tx<{ id: string }[]>`
    insert into account (kind, nick, name) values ('user', 'owner', 'Owner') returning id`;
  const rows = await tx<{ id: string }[]>`
    insert into conversation (kind, title, created_at)
    select 'group', 'Group ' || n, now() - interval '60 days' from generate_series(1, ${groups}::int) n returning id`;
  await tx`
    insert into conversation_head (conversation_id, last_seq, last_rev, last_at)
    select id, ${messagesPerGroup}::bigint, ${messagesPerGroup}::bigint,
      ${messagesPerGroup === 0 ? tx`'-infinity'` : tx`now() - interval '1 day' - id * interval '1 second'`}
    from conversation where kind = 'group'`;
  await tx`
    insert into membership (conversation_id, account_id, role)
    select id, ${owner!.id}::bigint, 'owner' from conversation where kind = 'group'`;
  return rows.map((row) => Number(row.id));
}

/**
 * Inserts an integration (a webhook with a token) and its account for each group. Returns the tokens in the order of
 * the groups.
 */
async function insertIntegrations(sql: Sql, ids: readonly number[]): Promise<string[]> {
  const sealer = new Sealer(SECRET);
  const tokens: string[] = [];
  for (const page of pages(ids)) {
    const made = page.map(() => newIntegrationToken(sealer));
    await sql`
      with input as (
        select * from unnest(${page}::bigint[], ${made.map((t) => t.hash)}::text[], ${made.map((t) => t.sealed)}::text[])
          with ordinality as u(id, hash, sealed, n)
      ), sender as (
        insert into account (kind, name, role) select 'webhook', 'Webhook', 'bot' from input returning id
      ), numbered as (
        select id, row_number() over () as n from sender
      )
      insert into integration (conversation_id, account_id, token_hash, token_sealed)
      select i.id, s.id, i.hash, i.sealed from input i join numbered s on s.n = i.n`;
    for (const { token } of made) tokens.push(token);
  }
  return tokens;
}

/**
 * Inserts messages in the order of time, as the server would have written them. First come the first messages of all
 * groups, then the second ones, and so on.
 */
async function insertMessages(sql: Sql, ids: readonly number[], perGroup: number): Promise<void> {
  for (let seq = 1; seq <= perGroup; seq += 1) {
    for (const page of pages(ids)) {
      await sql`
        insert into message (conversation_id, seq, rev, sender_id, text, sent_at)
        select h.conversation_id, ${seq}::bigint, ${seq}::bigint, i.account_id,
          'message ' || h.conversation_id || ': load on web-' || h.conversation_id % 7 || ' is above its threshold',
          h.last_at - ${perGroup - seq}::int * ${MESSAGE_EVERY}::interval
        from conversation_head h join integration i on i.conversation_id = h.conversation_id
        where h.conversation_id = any(${page}::bigint[])
        order by h.conversation_id`;
    }
  }
}

/** Inserts hooks that have delivered everything. No receiver listens at their URLs. */
async function insertHooks(sql: Sql, ids: readonly number[], options: SeedOptions): Promise<void> {
  const sealer = new Sealer(SECRET);
  for (let n = 1; n <= options.hooksPerSecondGroup; n += 1) {
    for (const page of pages(ids)) {
      const sealed = page.map(() => sealer.seal('hook-secret', newHookSecret()));
      await sql`
        insert into reverse_hook
          (conversation_id, url, secret_sealed, start_seq, cursor, last_success_at, created_at)
        select u.id, ${`http://127.0.0.1:9/hooks/${n}`}, u.sealed, 0, h.last_seq, h.last_at, h.last_at - interval '30 days'
        from unnest(${page}::bigint[], ${sealed}::text[]) as u(id, sealed)
        join conversation_head h on h.conversation_id = u.id`;
    }
  }
}

function* pages(ids: readonly number[]): Iterable<number[]> {
  for (let from = 0; from < ids.length; from += PAGE) yield ids.slice(from, from + PAGE);
}
