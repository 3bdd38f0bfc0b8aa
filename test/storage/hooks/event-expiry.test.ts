import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { AccountId, ConversationId, HookId, Rev, Seq } from '../../../src/model/ids.ts';
import { removeExpiredEvents } from '../../../src/storage/hooks/event-expiry.ts';
import type { NewHook } from '../../../src/storage/hooks/hooks.ts';
import type { Pool } from '../../../src/storage/db/pool.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { makeGroups, makeHook, makeMembers, type StoredGroup } from '../fixture.ts';

const BEFORE = new Date('2026-11-16T00:00:00Z');
const OLD = new Date('2026-11-15T12:00:00Z');
const YOUNG = new Date('2026-11-16T12:00:00Z');

let database: TestDatabase;
let pool: Pool;
let group: StoredGroup;
let alice: AccountId;
let lost: [ConversationId, number][];
beforeEach(async () => {
  database = await createTestDatabase();
  pool = database.open().general;
  group = (await makeGroups(database, 1))[0]!;
  [alice] = (await makeMembers(database, group, ['alice'])) as [AccountId];
  lost = [];
});
afterEach(() => database.drop());

/** Inserts events with these revs. Each is about the message whose seq is half the rev. */
async function writeEvents(revs: readonly number[], at: Date, changes: { kind?: string; actor?: number } = {}) {
  const { kind = 'message.updated', actor = alice } = changes;
  await database.query(
    (sql) => sql`
      insert into hook_event (conversation_id, rev, after_seq, seq, kind, actor_id, at)
      select ${group.id}, rev, rev / 2, rev / 2, ${kind}, ${actor}, ${at}
      from unnest(${[...revs]}::bigint[]) as u(rev)`,
  );
}

const makeAskingHook = (changes: Partial<NewHook> = {}): Promise<HookId> =>
  makeHook(database, group, { events: ['message.updated'], ...changes });

const run = (maxEvents = 100_000, beforeStep = () => Promise.resolve()): ReturnType<typeof removeExpiredEvents> =>
  removeExpiredEvents(pool, {
    writtenBefore: BEFORE,
    maxEvents,
    beforeStep,
    onEventsLost: (conversationId, count) => lost.push([conversationId, count]),
  });

const revsLeft = async (): Promise<number[]> =>
  (await database.query((sql) => sql`select rev from hook_event order by rev`)).map(({ rev }) => Number(rev));
const rowOf = async (hook: HookId) => {
  const [row] = await database.query(
    (sql) => sql`select cursor, event_cursor, generation from reverse_hook where id = ${hook}`,
  );
  return { ...row };
};
const logOf = (hook: HookId) =>
  database.query(async (sql) => [
    ...(await sql`select seq, last_seq, rev, last_rev, attempt, outcome from delivery_attempt where hook_id = ${hook}`),
  ]);
const notices = () =>
  database.query(async (sql) => [...(await sql`select kind, details, after_seq from notice order by rev`)]);

describe('the removal of events', () => {
  test('takes those that are past their time, and leaves a hook alone that has got them', async () => {
    const hook = await makeAskingHook();
    await writeEvents([2, 4, 6], OLD);
    await writeEvents([8, 10], YOUNG);
    await database.query((sql) => sql`update reverse_hook set event_cursor = 6 where id = ${hook}`);
    expect(await run()).toEqual({ events: 3, lostEvents: 0 });
    expect(await revsLeft()).toEqual([8, 10]);
    expect(await rowOf(hook)).toEqual({ cursor: 0, event_cursor: 6, generation: 0 });
    expect([await logOf(hook), await notices(), lost]).toEqual([[], [], []]);
    expect(await run()).toEqual({ events: 0, lostEvents: 0 });
  });

  test('tells of what a hook has not got, once, and the hook goes on behind it', async () => {
    const [hook, other] = [await makeAskingHook(), await makeAskingHook({ url: 'http://other.example/path' })];
    await writeEvents([2, 4, 6], OLD);
    await writeEvents([8], YOUNG);
    await database.query((sql) => sql`update conversation_head set last_seq = 4, last_rev = 8`);
    await database.query((sql) => sql`update reverse_hook set event_cursor = 2, paused_at = now() where id = ${hook}`);
    expect(await run()).toEqual({ events: 3, lostEvents: 5 });
    const expired = { attempt: 0, outcome: 'expired', last_seq: 3, last_rev: 6 };
    expect(await logOf(hook)).toEqual([{ ...expired, seq: 2, rev: 4 }]);
    expect(await logOf(other)).toEqual([{ ...expired, seq: 1, rev: 2 }]);
    expect(await rowOf(hook)).toEqual({ cursor: 0, event_cursor: 6, generation: 1 });
    expect(await notices()).toEqual([
      { kind: 'hook_events_expired', details: { hook, host: '127.0.0.1', events: 2 }, after_seq: 4 },
      { kind: 'hook_events_expired', details: { hook: other, host: 'other.example', events: 3 }, after_seq: 4 },
    ]);
    expect(lost).toEqual([[group.id, 5]]);
    expect(await run()).toEqual({ events: 0, lostEvents: 0 });
    expect(await logOf(hook)).toHaveLength(1);
  });

  test('counts nothing as lost that the hook would not have been told of', async () => {
    await makeAskingHook({ events: ['message.deleted'] });
    await makeAskingHook({ startAfterSeq: 3 as Seq });
    await makeAskingHook({ startAfterRev: 6 as Rev });
    await makeAskingHook({ events: [] });
    await writeEvents([2, 4, 6], OLD);
    expect(await run()).toEqual({ events: 3, lostEvents: 0 });
    await writeEvents([8], OLD, { actor: group.accountId });
    await database.query((sql) => sql`delete from reverse_hook`);
    await makeAskingHook({ skip: ['webhook'] });
    expect(await run()).toEqual({ events: 1, lostEvents: 0 });
    expect(await notices()).toEqual([]);
  });

  test('takes the oldest of a group beyond its bound, whatever their age', async () => {
    const hook = await makeAskingHook();
    await writeEvents([2, 4, 6, 8, 10], YOUNG);
    expect(await run(3)).toEqual({ events: 2, lostEvents: 2 });
    expect(await revsLeft()).toEqual([6, 8, 10]);
    expect(await rowOf(hook)).toMatchObject({ event_cursor: 4 });
    expect(await run(3)).toEqual({ events: 0, lostEvents: 0 });
  });

  test('ends what was repeated of them, and leaves what is repeated of younger ones', async () => {
    const hook = await makeAskingHook({ order: 'none' });
    await writeEvents([2, 4, 6], OLD);
    await writeEvents([8, 10], YOUNG);
    await database.query((sql) => sql`update reverse_hook set event_cursor = 10 where id = ${hook}`);
    await database.query(
      (sql) => sql`
        insert into delivery_retry (conversation_id, hook_id, seq, last_seq, rev, last_rev, attempts, next_at)
        select r.conversation_id, r.id, v.* from reverse_hook r, (values
          (0, 0, 2, 2, 1, now()), (0, 0, 6, 10, 1, now()), (7, 7, 0, 0, 1, now())) as v where r.id = ${hook}`,
    );
    expect(await run()).toEqual({ events: 3, lostEvents: 2 });
    const retries = await database.query((sql) => sql`select seq, rev, last_rev from delivery_retry order by seq desc`);
    expect([...retries]).toEqual([
      { seq: 7, rev: 0, last_rev: 0 },
      { seq: 0, rev: 7, last_rev: 10 },
    ]);
    expect(await rowOf(hook)).toMatchObject({ event_cursor: 10 });
  });

  test('looks at many groups in pages, and ends with what it is told to end with', async () => {
    await database.query(
      (sql) => sql`
        insert into hook_event (conversation_id, rev, after_seq, seq, kind, actor_id, at)
        select n, 1, 1, 1, 'message.deleted', 1, ${OLD} from generate_series(1, 1234) n`,
    );
    let steps = 0;
    const end = run(100_000, () => ((steps += 1) > 3 ? Promise.reject(new Error('enough')) : Promise.resolve()));
    await expect(end).rejects.toThrow('enough');
    expect((await revsLeft()).length).toBe(1_232);
    expect(await run()).toEqual({ events: 1_232, lostEvents: 0 });
  });
});
