import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { LocalBus } from '../../src/bus/bus.ts';
import { silentLog, type Log } from '../../src/log.ts';
import { Housekeeping } from '../../src/workers/housekeeping.ts';
import { testConfig } from '../support/config.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';

const OLD_KEYS = 12_345;
/** The number of rows that one statement deletes. */
const PAGE = 5_000;

let database: TestDatabase;

beforeEach(async () => {
  database = await createTestDatabase();
  await database.query(
    (sql) => sql`
    insert into idempotency_key (conversation_id, key, seq, body_hash, created_at)
    select 1, 'old ' || n, n, '-', now() - interval '2 days' from generate_series(1, ${OLD_KEYS}::int) n`,
  );
});
afterEach(() => database.drop());

const housekeepingOf = (node: string, log: Log = silentLog()): Housekeeping =>
  new Housekeeping({
    database: database.open(),
    bus: new LocalBus(),
    config: testConfig(database.target, '/nowhere'),
    node,
    log,
  });

async function keysLeft(): Promise<number> {
  const [row] = await database.query((sql) => sql<{ count: number }[]>`select count(*) as count from idempotency_key`);
  return row!.count;
}

/** Ends the time for which the job lock gives a round to the node that began it. */
const expireJobLock = (): Promise<unknown> =>
  database.query((sql) => sql`update job_lock set expires_at = clock_timestamp() - interval '1 ms'`);

describe('a round of cleaning up', () => {
  test('is done by one of the nodes that begin it at the same moment', async () => {
    const nodes = ['a', 'b', 'c'].map((node) => housekeepingOf(node));
    const rounds = await Promise.all(nodes.map((node) => node.runOnce()));
    expect(rounds.filter((removed) => removed !== null)).toEqual([expect.objectContaining({ keys: OLD_KEYS })]);
    expect(await keysLeft()).toBe(0);
  });

  test('is not repeated by a node whose clock comes to it a little later, and is by any node the next time', async () => {
    const [a, b] = [housekeepingOf('a'), housekeepingOf('b')];
    expect(await a.runOnce()).not.toBeNull();
    expect(await b.runOnce()).toBeNull();
    expect(await a.runOnce()).toBeNull();
    await expireJobLock();
    expect(await b.runOnce()).not.toBeNull();
  });

  test('of a node that was killed in the middle is made up for by another the next time', async () => {
    await database.query(
      (sql) => sql`update job_lock set holder = 'killed', expires_at = clock_timestamp() + interval '10 minutes'`,
    );
    const b = housekeepingOf('b');
    expect(await b.runOnce()).toBeNull();
    expect(await keysLeft()).toBe(OLD_KEYS);
    await expireJobLock();
    expect(await b.runOnce()).toMatchObject({ keys: OLD_KEYS });
  });

  test('is not waited for for ever when the clock of the database was set back meanwhile', async () => {
    await database.query(
      (sql) => sql`update job_lock set holder = 'a', expires_at = clock_timestamp() + interval '1 year'`,
    );
    expect(await housekeepingOf('b').runOnce()).not.toBeNull();
  });

  test('ends for a node that froze in it, when another has taken it over before it woke', async () => {
    // Another node takes the job over at the moment when the first page is deleted.
    await database.query((sql) =>
      sql.unsafe(`
        create function take_over() returns trigger language plpgsql as $$ begin
          update job_lock set holder = 'b', expires_at = clock_timestamp() + interval '10 minutes'; return null; end $$;
        create trigger take_over after delete on idempotency_key for each statement execute function take_over()`),
    );
    const warnings: string[] = [];
    const log = { ...silentLog(), warn: (event: string) => warnings.push(event) };
    expect(await housekeepingOf('a', log).runOnce()).toBeNull();
    expect(warnings).toHaveLength(1);
    expect(await keysLeft()).toBe(OLD_KEYS - PAGE);
  });
});
