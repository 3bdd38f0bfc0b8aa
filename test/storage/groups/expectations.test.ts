import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import {
  advanceIntakeClock,
  findGroupsWithExpectationNews,
  listExpectations,
  setExpectation,
  postExpectationNews,
} from '../../../src/storage/groups/expectations.ts';
import { lockGroup } from '../../../src/storage/groups/groups.ts';
import { writePosts, type FlushResult, type Post } from '../../../src/storage/messages/write-posts.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { passOpenTime, readIntakeClock } from '../../workers/expectation-fixture.ts';
import { holdOpen, isWaiting, makeGroups, post, readWholeLog, until, type StoredGroup } from '../fixture.ts';

let database: TestDatabase;
let group: StoredGroup;
beforeEach(async () => {
  database = await createTestDatabase();
  [group] = (await makeGroups(database, 1)) as [StoredGroup];
});
afterEach(() => database.drop());

const set = (key: string, withinS = 60, max = 100): Promise<string> =>
  database.query((sql) =>
    sql.begin(async (tx) => {
      await lockGroup(tx, group.id);
      return setExpectation(tx, group.id, { key, withinS, max });
    }),
  );
const write = (...posts: Post[]): Promise<FlushResult[]> => database.query((sql) => writePosts(sql, posts));
const tell = (of = database): Promise<number | null> =>
  of.query((sql) => sql.begin((tx) => postExpectationNews(tx, group.id, ({ kind, key }) => `${kind} ${key}`)));
const advance = (openMs: number): Promise<unknown> => database.query((sql) => advanceIntakeClock(sql, openMs));
const shiftLastAdvance = (interval: string): Promise<unknown> =>
  database.query((sql) => sql`update intake_clock set advanced_at = clock_timestamp() + ${interval}::interval`);
const states = async (): Promise<[string, string][]> => {
  const rows = await database.query(
    (sql) => sql<{ key: string; state: string }[]>`select key, state from expectation order by key`,
  );
  return rows.map(({ key, state }) => [key, state]);
};

describe('the intake clock', () => {
  test('is not written where no group expects anything', async () => {
    await advance(5_000);
    expect(await database.query((sql) => sql`select from intake_clock`)).toHaveLength(0);
  });

  test('counts what passed since its last advance, and no more than the node could take posts', async () => {
    await set('a');
    await advance(5_000);
    expect(await readIntakeClock(database)).toBe(0);
    await shiftLastAdvance('-3 seconds');
    await advance(5_000);
    const first = await readIntakeClock(database);
    expect(first).toBeGreaterThanOrEqual(3_000);
    expect(first).toBeLessThan(5_000);
    // No node ran for a day.
    await shiftLastAdvance('-1 day');
    await advance(2_000);
    expect(await readIntakeClock(database)).toBe(first + 2_000);
  });

  test('stands still for a step when the clock of the database is set back, and runs on', async () => {
    await set('a');
    await advance(5_000);
    await shiftLastAdvance('1 day');
    await advance(5_000);
    expect(await readIntakeClock(database)).toBe(0);
    await shiftLastAdvance('-1 second');
    await advance(5_000);
    expect(await readIntakeClock(database)).toBeGreaterThanOrEqual(1_000);
  });
});

describe('an expectation', () => {
  test('is one of at most 100 of its group', async () => {
    expect(await set('a', 60, 1)).toBe('set');
    expect(await set('b', 60, 1)).toBe('full');
    expect(await set('a', 60, 1)).toBe('unchanged');
    expect(await set('a', 120, 1)).toBe('set');
    expect(await states()).toEqual([['a', 'waiting']]);
  });

  test('is due after its time, and not a step of the clock too early', async () => {
    await set('a', 3_600);
    await passOpenTime(database, 3_600_000);
    expect(await database.query(findGroupsWithExpectationNews)).toEqual([]);
    expect(await tell()).toBeNull();
    await passOpenTime(database, 10_000);
    expect(await database.query(findGroupsWithExpectationNews)).toEqual([group.id]);
    expect(await tell()).toBe(1);
  });

  test('is told once by nodes that tell it at the same moment', async () => {
    await set('a');
    await set('b');
    await passOpenTime(database, 70_000);
    const told = await Promise.all(Array.from({ length: 4 }, () => tell()));
    expect(told.filter((seq) => seq !== null)).toEqual([2]);
    expect((await readWholeLog(database)).map(({ text }) => text)).toEqual(['overdue a', 'overdue b']);
  });

  test('that a post reaches while the group is told has returned, and that is told too', async () => {
    await set('a');
    await passOpenTime(database, 70_000);
    const telling = await holdOpen(database.target, (tx) =>
      postExpectationNews(tx, group.id, ({ kind, key }) => `${kind} ${key}`),
    );
    const pool = database.open({ lockTimeoutMs: 60_000 }).general;
    const posted = pool.run((sql) => writePosts(sql, [post(group, 'done', { expectation: { key: 'a' } })]));
    await until(database, (sql) => isWaiting(sql, 'general'));
    await telling.release();
    expect(await posted).toMatchObject([{ outcome: 'new', seq: 2 }]);
    expect(await states()).toEqual([['a', 'returned']]);
    expect(await database.query(findGroupsWithExpectationNews)).toEqual([group.id]);
    await tell();
    expect((await readWholeLog(database)).map(({ text }) => text)).toEqual(['overdue a', 'done', 'returned a']);
    expect(await states()).toEqual([['a', 'waiting']]);
  });

  test('waits anew from each post with its key, in a flush with others', async () => {
    for (const key of ['a', 'b', 'c']) await set(key);
    await passOpenTime(database, 65_000);
    const sign = (key: string, changes: Partial<Post> = {}): Post =>
      post(group, 'done', { expectation: { key }, ...changes });
    const refused = sign('c', { admission: 'of another group' });
    const results = await write(sign('a'), post(group, 'plain'), sign('a'), sign('unknown'), refused);
    expect(results.map(({ outcome }) => outcome)).toEqual(['new', 'new', 'new', 'new', 'refused']);
    await passOpenTime(database, 10_000);
    await tell();
    expect(await states()).toEqual([
      ['a', 'waiting'],
      ['b', 'overdue'],
      ['c', 'overdue'],
    ]);
    const [first] = await database.query((sql) => listExpectations(sql, group.id));
    expect(first).toMatchObject({ key: 'a', isOverdue: false, lastPostAt: expect.any(Date), dueAt: expect.any(Date) });
  });

  test('counts no repetition of a post that was written before', async () => {
    await set('a');
    const sign = post(group, 'done', { expectation: { key: 'a' }, key: 'once', bodyHash: 'x' });
    await write(sign);
    await passOpenTime(database, 65_000);
    expect(await write(sign)).toMatchObject([{ outcome: 'repeat' }]);
    await passOpenTime(database, 10_000);
    await tell();
    expect(await states()).toEqual([['a', 'overdue']]);
  });
});
