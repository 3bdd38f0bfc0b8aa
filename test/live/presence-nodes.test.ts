import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { PostgresBus } from '../../src/bus/postgres-bus.ts';
import { Presence } from '../../src/live/presence.ts';
import { silentLog } from '../../src/log.ts';
import type { AccountId } from '../../src/model/ids.ts';
import { heartbeatAndListLiveNodes, listLiveNodes } from '../../src/storage/hooks/nodes.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';

const PEOPLE = 12_000;
const TICK_MS = 100;

let database: TestDatabase;
const stops: (() => void)[] = [];

beforeEach(async () => {
  database = await createTestDatabase();
});
afterEach(async () => {
  for (const stop of stops.splice(0)) stop();
  await database.drop();
});

/** Starts a node with peers on the same database. The ids of its people begin at `first`. */
async function startNode(name: string, first: number): Promise<{ presence: Presence; bus: PostgresBus }> {
  const opened = database.open();
  await opened.general.run((sql) => heartbeatAndListLiveNodes(sql, name, 600_000));
  const bus = new PostgresBus(opened, silentLog(), { node: name });
  const presence = new Presence({
    bus,
    node: name,
    listLiveNodes: () => opened.general.run(listLiveNodes),
    onChange: () => {},
  });
  presence.start();
  const timer = setInterval(() => presence.tick(), TICK_MS);
  stops.push(() => {
    clearInterval(timer);
    bus.stop();
  });
  for (let n = 0; n < PEOPLE; n += 1) presence.firstForegroundSessionStarted((first + n) as AccountId);
  bus.start();
  return { presence, bus };
}

test('two servers with 12,000 people each see all of them, who comes later, and who leaves', async () => {
  const a = await startNode('a', 1);
  const b = await startNode('b', 1_000_001);
  const seen = (): number[] => [a, b].map(({ presence }) => presence.onlineAccounts().length);
  await eventually(seen, (counts) => counts.every((count) => count === 2 * PEOPLE));
  for (let n = 0; n < 5_000; n += 1) a.presence.firstForegroundSessionStarted((2_000_001 + n) as AccountId);
  await eventually(seen, (counts) => counts.every((count) => count === 2 * PEOPLE + 5_000));
  for (let n = 0; n < PEOPLE; n += 1) b.presence.lastForegroundSessionBackgrounded((1_000_001 + n) as AccountId);
  await eventually(seen, (counts) => counts.every((count) => count === PEOPLE + 5_000));
  expect(new Set(b.presence.onlineAccounts())).toEqual(new Set(a.presence.onlineAccounts()));
  a.presence.stop();
  await eventually(
    () => b.presence.onlineAccounts().length,
    (count) => count === 0,
  );
});
