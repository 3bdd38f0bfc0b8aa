import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { deviceKinds } from '../../src/model/device.ts';
import type { AccountId, ConversationId } from '../../src/model/ids.ts';
import { fanOut } from '../../src/storage/push/push-fan-out.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';

const PEOPLE = 20_000;
const SENDERS = 20;
const DAY_MS = 86_400_000;

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  await fill();
});
afterAll(() => database.drop());

/**
 * Fills one group with all people, each with one device. A third of them want only mentions, and half have blocked
 * somebody.
 */
async function fill(): Promise<void> {
  await database.query(async (sql) => {
    await sql.unsafe(`
      set synchronous_commit = off;
      -- All references are right by construction; checking them would take most of the time.
      set session_replication_role = replica;
      insert into account (kind, nick, name) select 'user', 'a' || n, 'A' from generate_series(1, ${PEOPLE}) n;
      insert into conversation (kind, title) values ('group', 'Crowd');
      insert into conversation_head (conversation_id, last_seq, last_rev, last_at)
      select id, ${SENDERS}, ${SENDERS}, now() from conversation;
      insert into membership (conversation_id, account_id, role) select c.id, a.id, 'member' from conversation c, account a;
      insert into session (account_id, token_hash, label) select id, id::text, '-' from account;
      insert into device (account_id, session_id, kind, token_hash, token_sealed, created_at)
      select account_id, id, 'web', id::text, '-', now() - interval '1 hour' from session;
      insert into block (account_id, blocked_id) select id, 1 from account where id % 2 = 0;
      insert into notification_setting (conversation_id, account_id, level)
      select conversation_id, account_id, 'mentions' from membership where account_id % 3 = 0;
      insert into message (conversation_id, seq, rev, sender_id, text, sent_at)
      select c.id, n, n, n, 'hello @a' || n + ${SENDERS}, now() from conversation c, generate_series(1, ${SENDERS}) n;`);
    await sql`vacuum analyze`;
  });
}

test('a crowd is told in one turn while everybody is in the foreground', async () => {
  const [group] = await database.query((sql) => sql<{ id: ConversationId }[]>`select id from conversation`);
  const foreground = Array.from({ length: PEOPLE }, (_, index) => (index + 1) as AccountId);
  const rules = {
    kindsToNotify: deviceKinds,
    foregroundAccounts: foreground,
    foregroundDelayMs: 60_000,
    maxAgeMs: DAY_MS,
  };
  const own = database.open({ generalPoolSize: 1 });
  // From the sixth execution in a session on, PostgreSQL may use one plan for all values. Here it does so from the
  // first.
  await own.general.run((sql) => sql`set plan_cache_mode = force_generic_plan`);
  // A comparison of each device with each foreground account would take longer than a statement may.
  const turn = await fanOut(own.general, [group!.id], rules);
  await own.stop();
  expect(turn).toEqual({ writtenPushes: expect.any(Number), conversationsWithMore: [] });
  const [told] = await database.query(
    (sql) => sql<{ all: number; mentions: number; held: number }[]>`
    select count(*) filter (where s.level is null)::int as all, count(s.level)::int as mentions,
      count(*) filter (where p.next_at > now() + interval '1 second')::int as held
    from push_pending p join device d on d.id = p.device_id
    left join notification_setting s on s.account_id = d.account_id`,
  );
  const wantMentions = Math.floor(PEOPLE / 3);
  const mentioned = Array.from({ length: SENDERS }, (_, n) => n + 1 + SENDERS).filter((id) => id % 3 === 0).length;
  expect(told).toEqual({ all: PEOPLE - wantMentions, mentions: mentioned, held: turn.writtenPushes });
});
