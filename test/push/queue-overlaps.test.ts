import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import type { AccountId, Seq } from '../../src/model/ids.ts';
import { expirePushes, settlePushes, cancelReadPushes } from '../../src/storage/push/push-settlement.ts';
import { claimDuePushes } from '../../src/storage/push/push-claims.ts';
import { fanOut } from '../../src/storage/push/push-fan-out.ts';
import type { Database } from '../../src/storage/database.ts';
import { holdOpen, isWaiting, until } from '../storage/fixture.ts';
import { PushStage } from './stage.ts';

// A row of push_pending covers all messages of a conversation that a device still has to be notified of. A removal of
// rows must leave those rows that cover newer messages.

// These time-outs are longer than any test: a lock time-out would end the waits that the tests arrange.
const PATIENT = { lockTimeoutMs: 600_000, flushTimeoutMs: 600_000, databaseCallTimeoutMs: 600_000 };
const HOUR_MS = 3_600_000;

let stage: PushStage;
let patient: Database;
let alice: AccountId;
let bob: AccountId;
beforeAll(async () => {
  stage = await PushStage.open();
  patient = stage.database.open(PATIENT);
});
beforeEach(async () => {
  [alice, bob] = (await stage.members('alice', 'bob')) as [AccountId, AccountId];
});
afterEach(() => stage.clear());
afterAll(() => stage.close());

/** Makes rows for all messages so far, as the fan-out does. */
async function makeRows(): Promise<void> {
  const rules = {
    kindsToNotify: ['web', 'apple'],
    foregroundAccounts: [],
    foregroundDelayMs: 0,
    maxAgeMs: HOUR_MS,
  } as const;
  await fanOut(stage.pools.general, [stage.group.id], rules);
}

/** The seqs of the first and last message of each waiting row. */
async function standing(): Promise<[number, number][]> {
  return (await stage.pending()).map(({ firstSeq, lastSeq }) => [firstSeq, lastSeq]);
}

const withdraw = (accountId: AccountId, seq: number): Promise<number> =>
  patient.general.run((sql) => cancelReadPushes(sql, [{ conversationId: stage.group.id, accountId, seq: seq as Seq }]));

describe('a read position', () => {
  test('withdraws what was read, and leaves a row that stands for something newer too', async () => {
    for (const account of [alice, bob]) await stage.device(account);
    for (const text of ['one', 'two', 'three']) await stage.post(text);
    await makeRows();
    expect(await standing()).toEqual([
      [1, 3],
      [1, 3],
    ]);
    expect(await withdraw(alice, 2)).toBe(0);
    expect(await withdraw(alice, 3)).toBe(1);
    expect(await stage.pending()).toMatchObject([{ deviceId: 2, firstSeq: 1, lastSeq: 3 }]);
  });

  test('that waits while the row grows leaves it', async () => {
    await stage.device(alice);
    await stage.post('one');
    await makeRows();
    const growing = await holdOpen(stage.database.target, (tx) => tx`update push_pending set last_seq = 2`);
    const withdrawn = withdraw(alice, 1);
    await until(stage.database, (sql) => isWaiting(sql, 'general'));
    await growing.release();
    expect(await withdrawn).toBe(0);
    expect(await standing()).toEqual([[1, 2]]);
  });

  test('heard by the queue leaves what is newer, which is sent', async () => {
    for (const account of [alice, bob]) await stage.device(account);
    stage.foreground.add(alice).add(bob);
    const queue = stage.start();
    for (const text of ['one', 'two', 'three']) await stage.post(text);
    await stage.setForeground(3);
    await stage.read(alice, 2 as Seq);
    await stage.read(bob, 3 as Seq);
    // The statement that withdraws Bob's row handles Alice's as well, or runs after the one that does.
    const left = await stage.waits(1);
    expect(left).toMatchObject([{ deviceId: 1, firstSeq: 1, lastSeq: 3 }]);
    await queue.stop(5_000);
    stage.foreground.clear();
    await stage.database.query((sql) => sql`update push_pending set next_at = now()`);
    stage.start();
    await stage.settled(3);
    expect(stage.told()).toEqual([['web-1', 'Sender 0: three']]);
  });
});

describe('the end of the time of a push', () => {
  const expire = () => patient.general.run((sql) => expirePushes(sql, { maxAgeMs: HOUR_MS, limit: 10 }));
  const age = (seqs: readonly number[]): Promise<unknown> =>
    stage.database.query(
      (sql) => sql`update message set sent_at = sent_at - interval '2 hours' where seq = any(${[...seqs]}::int[])`,
    );

  test('leaves a row that stands for something younger too, until that is old', async () => {
    for (const account of [alice, bob]) await stage.device(account);
    await stage.post('old');
    await stage.post('young');
    await makeRows();
    await stage.database.query(async (sql) => {
      // Bob's row covers only the old message.
      await sql`update push_pending set last_seq = 1 where device_id = 2`;
      await sql`update push_pending set created_at = now() - interval '2 hours'`;
    });
    await age([1]);
    expect(await expire()).toEqual([{ kind: 'web', count: 1 }]);
    expect(await stage.pending()).toMatchObject([{ deviceId: 1, firstSeq: 1, lastSeq: 2 }]);
    expect(await stage.logged()).toMatchObject([{ account: bob, event: 'expired' }]);
    // Alice's row now has the age of the younger message.
    await stage.database.query((sql) => sql`update push_pending set created_at = now() - interval '2 hours'`);
    await age([2]);
    expect(await expire()).toEqual([{ kind: 'web', count: 1 }]);
    expect(await standing()).toEqual([]);
  });

  test('leaves a row that somebody has claimed', async () => {
    await stage.device(alice);
    await stage.post('old');
    await makeRows();
    await stage.database.query((sql) => sql`update push_pending set created_at = now() - interval '2 hours'`);
    await age([1]);
    await patient.general.run((sql) => claimDuePushes(sql, 'web', { limit: 1, forMs: HOUR_MS }));
    expect(await expire()).toEqual([]);
    expect(await standing()).toEqual([[1, 1]]);
  });
});

describe('what a push service answered', () => {
  test('about a row that was claimed again meanwhile is ignored', async () => {
    await stage.device(alice);
    await stage.post('one');
    await makeRows();
    const take = () => patient.general.run((sql) => claimDuePushes(sql, 'web', { limit: 1, forMs: HOUR_MS }));
    const [first] = await take();
    await stage.database.query((sql) => sql`update push_pending set claimed_until = now()`);
    const [second] = await take();
    const settle = (claim: typeof first): Promise<unknown> =>
      patient.general.run((sql) => settlePushes(sql, [{ verdict: 'done', claim: claim! }], HOUR_MS));
    await settle(first);
    expect(await standing()).toEqual([[1, 1]]);
    await settle(second);
    expect(await standing()).toEqual([]);
  });

  test('is about what was claimed: the row stands for what came later, and is due at once', async () => {
    await stage.device(alice);
    await stage.post('one');
    await makeRows();
    const [claim] = await patient.general.run((sql) => claimDuePushes(sql, 'web', { limit: 1, forMs: HOUR_MS }));
    await stage.post('two');
    await makeRows();
    await patient.general.run((sql) => settlePushes(sql, [{ verdict: 'done', claim: claim! }], HOUR_MS));
    expect(await standing()).toEqual([[2, 2]]);
    expect(await patient.general.run((sql) => claimDuePushes(sql, 'web', { limit: 1, forMs: HOUR_MS }))).toMatchObject([
      { firstSeq: 2, lastSeq: 2 },
    ]);
  });
});
