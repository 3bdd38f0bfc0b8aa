import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { callServer } from '../../src/cli/core/control-client.ts';
import { listAllGroups } from '../../src/operations/groups/groups.ts';
import { listAllHooks } from '../../src/operations/hooks/hook-list.ts';
import { listUsersAndBots } from '../../src/operations/accounts/users.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { Workspace } from './program.ts';

/** Rows whose values have the largest size: a name of 200 characters with three bytes each, a host of 253. */
const FILL = `
  insert into account (kind, nick, name) select 'user', rpad('u' || n, 32, 'x'), repeat('€', 200)
    from generate_series(1, 1001) n;
  insert into conversation (kind, title, about) select 'group', repeat('€', 200), repeat('€', 2000)
    from generate_series(1, 1001);
  insert into conversation_head (conversation_id, last_seq, archived_at) select id, 4000000000, now() from conversation;
  insert into message (conversation_id, seq, rev, sender_id, text, sent_at)
    select id, 3000000001, 1, 1, 'text', now() from conversation;
  insert into reverse_hook (conversation_id, url, secret_sealed, start_seq, cursor, failures, failing_since,
      next_attempt_at, last_success_at, last_error_at, last_error_category, last_error_code, removed_at, removed_by)
    select id, 'http://' || repeat('h', 253) || ':65535/' || repeat('p', 1780), '-', 0, 3000000000, 1000000, now(),
      now(), now(), now(), 'address policy', 503, now(), 'target' from conversation`;

let database: TestDatabase;
let workspace: Workspace;
beforeAll(async () => {
  database = await createTestDatabase();
  await database.query((sql) => sql.unsafe(FILL));
  workspace = await Workspace.create();
  await workspace.configure(database.target);
  await workspace.serve();
});
afterAll(async () => {
  await workspace.remove();
  await database.drop();
});

const call = () => ({ dataDir: workspace.dataDir });
const page = { limit: 1_000 };

test('the largest page of groups fits into one answer', async () => {
  const input = { ...page, after: 0, archived: null };
  const { groups, next } = await callServer({ ...call(), operation: listAllGroups, input });
  expect({ count: groups.length, next }).toEqual({ count: 1_000, next: groups.at(-1)!.id });
});

test('the largest page of accounts fits into one answer', async () => {
  const { users, next } = await callServer({ ...call(), operation: listUsersAndBots, input: { ...page, after: '' } });
  expect({ count: users.length, next }).toEqual({ count: 1_000, next: users.at(-1)!.nick });
});

test('the largest page of hooks fits into one answer', async () => {
  const input = { ...page, after: 0, state: 'removed' as const };
  const { hooks, next } = await callServer({ ...call(), operation: listAllHooks, input });
  expect({ count: hooks.length, next }).toEqual({ count: 1_000, next: hooks.at(-1)!.id });
});
