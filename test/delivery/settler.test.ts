import type { Worker } from 'node:worker_threads';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { startThread } from '../../src/assets.ts';
import { Settler } from '../../src/delivery/settler.ts';
import { silentLog } from '../../src/log.ts';
import type { HookId, Seq } from '../../src/model/ids.ts';
import { claimPartitions } from '../../src/storage/hooks/leases.ts';
import { SettlementWriter } from '../../src/storage/hooks/settlement-writer.ts';
import type { Settlement } from '../../src/storage/hooks/settlement.ts';
import { holdOpen, isWaiting, makeGroups, makeHook, UNTROUBLED, until } from '../storage/fixture.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';

let database: TestDatabase;
let writer: SettlementWriter;
let settler: Settler;
let hooks: HookId[];
/** The settlement threads that were started, the newest last. */
let threads: Worker[];

beforeEach(async () => {
  database = await createTestDatabase();
  await database.query((sql) => claimPartitions(sql, { holder: 'us', leaseMs: 60_000 }));
  const group = (await makeGroups(database, 1))[0]!;
  hooks = [await makeHook(database, group), await makeHook(database, group)];
  threads = [];
  const start: typeof startThread = (name, options) => {
    const thread = startThread(name, options);
    threads.push(thread);
    return thread;
  };
  writer = new SettlementWriter(database.target, { timeoutMs: 10_000, log: silentLog(), start });
  settler = new Settler(writer, silentLog());
});
afterEach(async () => {
  settler.stop();
  await writer.stop();
  await database.drop();
});

const settlement = (hookId: HookId): Settlement => {
  return { hookId, generation: 0, epoch: 1, ...UNTROUBLED, cursor: 1 as Seq, attempts: [] };
};

const hold = (hookId: HookId) =>
  holdOpen(database.target, (tx) => tx`select from reverse_hook where id = ${hookId} for update`);

test('what the thread took with it when it died is settled by the next one', async () => {
  const held = await hold(hooks[0]!);
  const taken = hooks.map((hook) => settler.settle(settlement(hook)));
  await until(database, (sql) => isWaiting(sql, 'settle'));
  await threads[0]!.terminate();
  await held.release();
  expect(await Promise.all(taken)).toEqual([true, true]);
  expect([threads.length, settler.pendingCount]).toEqual([2, 0]);
});

test('a row that stays locked holds up its own hook only', async () => {
  const held = await hold(hooks[0]!);
  const first = settler.settle(settlement(hooks[0]!));
  expect(await settler.settle(settlement(hooks[1]!))).toBe(true);
  expect(settler.pendingCount).toBe(1);
  await held.release();
  expect(await first).toBe(true);
  expect(threads).toHaveLength(1);
});
