import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { AccountId, ConversationId } from '../../../src/model/ids.ts';
import type { Sql } from '../../../src/storage/db/connection.ts';
import {
  countOverdueExpectations,
  findGroupsWithExpectationNews,
  findExpectedWithinS,
  listExpectations,
  postExpectationNews,
} from '../../../src/storage/groups/expectations.ts';
import { writePosts, type Post } from '../../../src/storage/messages/write-posts.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { post } from '../fixture.ts';

const GROUPS = 2_000;
const KEYS = 20;

/** Many groups with many expectations; a few are due, one each in groups 1 to 5. */
const FILL = `
  insert into account (kind, name) select 'webhook', 'sender' from generate_series(1, ${GROUPS});
  insert into conversation (kind, title) select 'group', 'group ' || n from generate_series(1, ${GROUPS}) n;
  insert into conversation_head (conversation_id) select n from generate_series(1, ${GROUPS}) n;
  insert into integration (conversation_id, account_id, token_hash, token_sealed)
    select n, n, 'hash ' || n, '-' from generate_series(1, ${GROUPS}) n;
  insert into expectation (conversation_id, key, within_s, due_ms)
    select n, 'key ' || m, 3600, case when n <= 5 and m = 1 then 1 else 1000000 end
    from generate_series(1, ${GROUPS}) n, generate_series(1, ${KEYS}) m;
  update expectation set state = 'overdue' where conversation_id = 6 and key = 'key 2';
  insert into intake_clock (open_ms, advanced_at) values (7, now())`;

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  await database.query((sql) => sql.unsafe(FILL));
  await database.query((sql) => sql.unsafe('vacuum analyze'));
});
afterAll(() => database.drop());

/** The number of rows of the table `expectation` that sequential scans have read. */
async function scanned(sql: Sql): Promise<number> {
  await sql`select pg_stat_force_next_flush()`;
  const [row] = await sql<{ rows: number }[]>`
    select seq_tup_read as rows from pg_stat_user_tables where relname = 'expectation'`;
  return row!.rows;
}

const group = (id: number): ConversationId => id as ConversationId;
const sign = (id: number): Post =>
  post({ id: group(id), accountId: id as AccountId, tokenHash: `hash ${id}` }, 'done', {
    expectation: { key: 'key 3' },
  });

test.each<[string, (sql: Sql) => Promise<unknown>]>([
  ['a post that is a sign of life', (sql) => writePosts(sql, [sign(7)])],
  [
    '50 posts that are signs of life',
    (sql) =>
      writePosts(
        sql,
        Array.from({ length: 50 }, (_, n) => sign(n + 10)),
      ),
  ],
  ['the search for what is due', async (sql) => expect(await findGroupsWithExpectationNews(sql)).toHaveLength(5)],
  ['the count of what is overdue', async (sql) => expect(await countOverdueExpectations(sql)).toBe(1)],
  ['the list of a group', async (sql) => expect(await listExpectations(sql, group(7))).toHaveLength(KEYS)],
  ['the look-up of a key', async (sql) => expect(await findExpectedWithinS(sql, group(7), 'key 4')).toBe(3_600)],
])('%s does not scan the expectations of all groups', async (_name, statement) => {
  await database.query(async (sql) => {
    const before = await scanned(sql);
    // From the sixth execution on, PostgreSQL may use a generic plan.
    for (let i = 0; i < 8; i += 1) await statement(sql);
    expect(await scanned(sql)).toBe(before);
  });
});

test('the telling of a group does not scan the expectations of all groups', async () => {
  await database.query(async (sql) => {
    const before = await scanned(sql);
    await sql.begin((tx) => postExpectationNews(tx, group(1), ({ key }) => key));
    expect(await scanned(sql)).toBe(before);
    expect(await findGroupsWithExpectationNews(sql)).toHaveLength(4);
  });
});
