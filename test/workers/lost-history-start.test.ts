import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { recordingLog } from '../support/recording-log.ts';
import { eventually } from '../support/eventually.ts';
import { postJson, TestServer, type TestGroup } from '../support/server.ts';

let server: TestServer;
let group: TestGroup;
const lines: string[] = [];

beforeEach(async () => {
  server = await TestServer.start({}, { log: recordingLog(lines) });
  group = await server.createGroup();
  for (const text of ['one', 'two', 'three']) await postJson(group.webhook, { text });
});
afterEach(async () => {
  await server.stop();
  lines.length = 0;
});

const epoch = async (): Promise<number> => {
  const rows = await server.database.query(
    (sql) => sql<{ value: string }[]>`select value from setting where name = 'log_epoch'`,
  );
  return Number(rows[0]?.value ?? '0');
};
const losses = (): string[] => lines.filter((line) => line.includes('changes of a conversation are lost'));

/** Undoes changes in the database, as if somebody had returned to an older copy of the disk. */
const takeBack = (): Promise<unknown> =>
  server.database.query(async (sql) => {
    await sql`delete from message where seq = 3`;
    await sql`update conversation_head set last_seq = 2, last_rev = last_rev - 1 where conversation_id = ${group.id}`;
  });

test('a start on a database that was taken back raises the epoch, is told once, and lets messages go on', async () => {
  await takeBack();
  await server.restart();
  const raised = await epoch();
  expect(raised).toBeGreaterThan(1_000_000);
  expect(losses()).toHaveLength(1);
  expect(JSON.parse(losses()[0]!)).toMatchObject({ conversation: group.id, knownSeq: 3, lastSeq: 2 });
  await postJson(`${server.url}/v1/webhooks/${group.token}`, { text: 'three again' });
  const texts = await server.database.query((sql) => sql`select text from message where seq = 3`);
  expect(texts).toEqual([{ text: 'three again' }]);
  const [record] = await server.database.query(
    (sql) => sql<{ value: string }[]>`select value from setting where name = 'history_lost'`,
  );
  expect(JSON.parse(record!.value)).toMatchObject({ epoch: raised, conversations: 1 });
  const notices = (): Promise<readonly object[]> =>
    server.database.query((sql) => sql`select details from notice where kind = 'history_lost'`);
  expect(await eventually(notices, (found) => found.length > 0)).toEqual([
    { details: { epoch: raised, first_lost_seq: 3, last_lost_seq: 3 } },
  ]);
  await server.restart();
  expect(await epoch()).toBe(raised);
  expect(losses()).toHaveLength(1);
});

test('a start that misses nothing raises nothing', async () => {
  await server.restart();
  expect(await epoch()).toBe(0);
  expect(losses()).toEqual([]);
});

test('a server is in the list of nodes, with what it found, until it stops in order', async () => {
  const nodes = (): Promise<readonly object[]> =>
    server.database.query((sql) => sql`select compared_timeline as timeline, finding from node`);
  expect(await nodes()).toEqual([{ timeline: 1, finding: 'complete' }]);
  const second = await TestServer.start({}, { database: server.database });
  expect(await nodes()).toHaveLength(2);
  await second.stop();
  expect(await nodes()).toHaveLength(1);
});
