import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { LocalBus } from '../../src/bus/bus.ts';
import { readWitnessFile } from '../../src/data-dir/witness-file.ts';
import type { Database } from '../../src/storage/database.ts';
import { MessageLog } from '../../src/storage/messages/message-log.ts';
import { insertNotice } from '../../src/storage/messages/notices.ts';
import { NOTICE_CHANGED_SEQ } from '../../src/storage/messages/witness.ts';
import { WitnessKeeper } from '../../src/workers/witness-keeper.ts';
import { logOptions, makeGroups, post, type StoredGroup } from '../storage/fixture.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { recordingLog } from '../support/recording-log.ts';

let database: TestDatabase;
let dataDir: string;
let group: StoredGroup;
const keepers: WitnessKeeper[] = [];
const lines: string[] = [];
const bus = new LocalBus();

beforeEach(async () => {
  database = await createTestDatabase();
  dataDir = await mkdtemp(join(tmpdir(), 'klatch-witness-'));
  [group] = (await makeGroups(database, 1)) as [StoredGroup];
  await setStoreId('the store');
});
afterEach(async () => {
  for (const keeper of keepers.splice(0)) await keeper.stop();
  await database.drop();
  await rm(dataDir, { recursive: true, force: true });
  lines.length = 0;
});

const setStoreId = (id: string): Promise<unknown> =>
  database.query(
    (sql) => sql`
      insert into setting (name, value) values ('store_id', ${id})
      on conflict (name) do update set value = excluded.value`,
  );

async function startKeeper(): Promise<{ pools: Database; keeper: WitnessKeeper }> {
  const pools = database.open();
  const keeper = new WitnessKeeper({ database: pools, bus, dataDir, log: recordingLog(lines) });
  keepers.push(keeper);
  await keeper.load();
  keeper.start();
  return { pools, keeper };
}

async function append(pools: Database, text: string): Promise<void> {
  const log = new MessageLog(
    pools.intake,
    logOptions({ onCommitted: (advanced) => bus.publish('messagesCommitted', advanced) }),
  );
  await log.append(post(group, text));
  await log.stop();
}

test('what was acknowledged is known at once, and with its moment in the file', async () => {
  const { pools } = await startKeeper();
  await append(pools, 'one');
  expect(pools.witness.heads).toMatchObject([{ conversationId: group.id, seq: 1 }]);
  const [row] = await database.query((sql) => sql<{ at: Date }[]>`select sent_at as at from message`);
  const content = await eventually(
    () => readWitnessFile(dataDir),
    (found) => found !== null && found.heads[0]![2] > 0,
  );
  const sentAtMs = row!.at.getTime();
  expect(content).toEqual({ storeId: 'the store', logEpoch: 0, heads: [[group.id, 1, sentAtMs, 1, 1, sentAtMs]] });
});

test('what another node has told of is looked up', async () => {
  const { pools } = await startKeeper();
  await database.query((sql) =>
    sql.begin((tx) => insertNotice(tx, { conversationId: group.id, kind: 'renamed', details: {} })),
  );
  bus.publish('nonMessageChangesCommitted', [group.id]);
  await eventually(
    () => pools.witness.heads,
    ([head]) => head?.rev === 1 && head.changedSeq === NOTICE_CHANGED_SEQ && head.changedAtMs > 0,
  );
});

test('a conversation without messages is looked up once', async () => {
  const { pools } = await startKeeper();
  bus.publish('nonMessageChangesCommitted', [group.id]);
  await eventually(
    () => readWitnessFile(dataDir),
    (found) => found !== null,
  );
  expect(pools.witness.heads).toMatchObject([{ conversationId: group.id, seq: 0, rev: 0 }]);
  expect(pools.witness.hasIncomplete).toBe(false);
});

test('the file is written when something has changed, and left alone else', async () => {
  const { pools, keeper } = await startKeeper();
  await append(pools, 'one');
  const path = join(dataDir, 'witness.json');
  const written = async (): Promise<number> => (await stat(path).catch(() => ({ mtimeMs: 0 }))).mtimeMs;
  const first = await eventually(written, (mtimeMs) => mtimeMs > 0);
  await keeper.stop();
  expect(await written()).toBe(first);
});

test('the next process of the data directory goes on from the file, if it is of the same database', async () => {
  const first = await startKeeper();
  await append(first.pools, 'one');
  await first.keeper.stop();
  const second = await startKeeper();
  expect(second.pools.witness.heads).toMatchObject([{ conversationId: group.id, seq: 1 }]);
  await second.keeper.stop();
  await setStoreId('another');
  const third = await startKeeper();
  expect(third.pools.witness.heads).toEqual([]);
  expect(lines.join()).toContain('of another database');
});

test('a broken file is told of and replaced', async () => {
  await writeFile(join(dataDir, 'witness.json'), '{"format":1,');
  const { pools } = await startKeeper();
  expect(lines.join()).toContain('cannot be used');
  pools.witness.recordMessage(group.id, 1);
  await eventually(
    () => readFile(join(dataDir, 'witness.json'), 'utf8'),
    (text) => text.endsWith('}\n'),
  );
});

test('nothing is written before the database has an id, and everything once it has', async () => {
  await setStoreId('unassigned');
  const { pools, keeper } = await startKeeper();
  pools.witness.recordMessage(group.id, 1);
  await keeper.stop();
  expect(await readWitnessFile(dataDir)).toBeNull();
  await setStoreId('the store');
  await keeper.stop();
  expect(await readWitnessFile(dataDir)).toMatchObject({ storeId: 'the store' });
});
