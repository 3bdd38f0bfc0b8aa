import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { silentLog, type Log } from '../../../src/log.ts';
import type { ConversationId } from '../../../src/model/ids.ts';
import { RefusedPostRecorder } from '../../../src/operations/core/refused-post-recorder.ts';
import type { Database } from '../../../src/storage/database.ts';
import { listRefusedPosts } from '../../../src/storage/groups/refused-posts.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { DatabaseProxy } from '../../support/database-proxy.ts';
import { eventually } from '../../support/eventually.ts';
import { recordingLog } from '../../support/recording-log.ts';

const GROUPS = 1_001;
const ID = 1 as ConversationId;

let test1: TestDatabase;
let database: Database;
beforeEach(async () => {
  test1 = await createTestDatabase();
  await test1.query(
    (sql) => sql`insert into conversation (kind, title) select 'group', 'G' from generate_series(1, ${GROUPS}::int)`,
  );
  database = test1.open();
});
afterEach(() => test1.drop());

const recorderOn = ({ general: pool }: Database, log: Log = silentLog()): RefusedPostRecorder =>
  new RefusedPostRecorder({ pool, log });

function refuse(recorder: RefusedPostRecorder, userAgent: string, conversationId = ID): void {
  const reason = { format: 'slack', code: 'invalid_input', sentence: 'The body was read as slack' };
  recorder.record({ conversationId, userAgent, ...reason });
}

const postsByAgent = async (id = ID): Promise<Record<string, number>> => {
  const rows = await test1.query((sql) => listRefusedPosts(sql, id));
  return Object.fromEntries(rows.map(({ userAgent, posts }) => [userAgent!, posts]));
};

const agents = (from: number, to: number): string[] => Array.from({ length: to - from + 1 }, (_, n) => `a${from + n}`);

const storedRows = async (): Promise<number> => {
  const [row] = await test1.query((sql) => sql<{ count: number }[]>`select count(*) as count from refused_post`);
  return row!.count;
};

test('of a group the newest 20 kinds are kept, whether the others wait or are stored', async () => {
  const recorder = recorderOn(database);
  for (const agent of agents(1, 25)) refuse(recorder, agent);
  await recorder.stop();
  expect(Object.keys(await postsByAgent()).sort()).toEqual(agents(6, 25).sort());
  const next = recorderOn(database);
  for (const agent of [...agents(23, 30), 'a23']) refuse(next, agent);
  await next.stop();
  const kept = await postsByAgent();
  expect(Object.keys(kept)).toEqual(expect.arrayContaining(agents(23, 30)));
  expect([kept['a23'], kept['a24'], kept['a30']]).toEqual([3, 2, 1]);
  expect(await storedRows()).toBe(20);
});

test('two nodes count the same posts in one row, and neither waits for the other', async () => {
  const [one, other] = [recorderOn(database), recorderOn(test1.open())];
  for (const recorder of [one, other]) for (const agent of agents(1, 15)) refuse(recorder, agent);
  for (const agent of agents(16, 25)) refuse(one, agent);
  await Promise.all([one.stop(), other.stop()]);
  const last = recorderOn(database);
  refuse(last, 'last');
  await last.stop();
  const kept = await postsByAgent();
  expect(kept).toMatchObject({ last: 1, a25: 1, a15: 2 });
  expect(await storedRows()).toBe(20);
});

test('while the database is away they wait, as many as there is room for, and the others are counted', async () => {
  const proxy = await DatabaseProxy.start(test1.target);
  const lines: string[] = [];
  try {
    const recorder = recorderOn(test1.open(proxy.address), recordingLog(lines));
    await proxy.refuse();
    for (let n = 1; n <= GROUPS; n += 1) refuse(recorder, 'a', n as ConversationId);
    refuse(recorder, 'a');
    expect(recorder.counts.dropped).toBe(1);
    await eventually(
      () => lines,
      (all) => all.length > 0,
    );
    refuse(recorder, 'a');
    await proxy.forward();
    await eventually(storedRows, (rows) => rows === GROUPS - 1);
    expect(await postsByAgent()).toEqual({ a: 3 });
    expect(lines.map((line) => JSON.parse(line).event)).toEqual(['refused posts cannot be stored, repeating']);
    await recorder.stop();
    expect(recorder.counts).toMatchObject({ dropped: 1, byFormat: { slack: GROUPS + 2, none: 0 } });
  } finally {
    await proxy.stop();
  }
});

test('a stop ends while the database is away, and says that something is missing', async () => {
  const away = test1.open();
  await away.stop();
  const lines: string[] = [];
  const recorder = recorderOn(away, recordingLog(lines));
  refuse(recorder, 'a');
  await recorder.stop();
  expect(lines.map((line) => JSON.parse(line).event)).toContain(
    'the newest refused posts of some groups are not stored',
  );
});

test('a group that somebody deleted meanwhile keeps no other one from being stored', async () => {
  const recorder = recorderOn(database);
  for (const id of [1, 2] as ConversationId[]) refuse(recorder, 'a', id);
  await test1.query((sql) => sql`delete from conversation where id = 2`);
  await recorder.stop();
  expect(await postsByAgent()).toEqual({ a: 1 });
});
