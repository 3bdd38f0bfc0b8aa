import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import type { AccountId } from '../../src/model/ids.ts';
import { eventually } from '../support/eventually.ts';
import { PushStage } from './stage.ts';

/** A time-out that is longer than any test: so no push here ends by it. */
const TIMEOUT_MS = 300_000;

let stage: PushStage;
let alice: AccountId;
let bob: AccountId;
beforeAll(async () => {
  stage = await PushStage.open();
});
beforeEach(async () => {
  [alice, bob] = (await stage.members('alice', 'bob')) as [AccountId, AccountId];
});
afterEach(() => stage.clear());
afterAll(() => stage.close());

/** Makes the services of these devices hang until `release`. */
function silence(tokens: readonly string[]): { release: () => void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  stage.service('web').answer = async ({ path }) => {
    if (tokens.includes(path.slice(1))) await promise;
    return 200;
  };
  return { release: resolve };
}

async function devices(account: AccountId, count: number): Promise<string[]> {
  const tokens = [];
  for (let n = 0; n < count; n += 1) tokens.push((await stage.device(account)).token);
  return tokens;
}

const told = (tokens: readonly string[]): number =>
  stage.got('web').filter(({ token }) => tokens.includes(token)).length;

describe('web push', () => {
  test('to silent hosts of one account keeps nobody else waiting, and all of it is sent in the end', async () => {
    const silent = await devices(alice, 20);
    const { release } = silence(silent);
    stage.start({ maxInFlightPerVendor: 16, timeoutMs: TIMEOUT_MS });
    await stage.post('first');
    // One account may have an eighth of the 16 slots, which is two.
    await eventually(
      () => told(silent),
      (count) => count === 2,
    );
    const [phone] = await devices(bob, 1);
    await stage.post('second');
    await eventually(
      () => told([phone!]),
      (count) => count === 1,
    );
    expect(told(silent)).toBe(2);
    release();
    await stage.settled(2);
    expect(new Set(stage.got('web').map(({ token }) => token))).toEqual(new Set([...silent, phone]));
  });

  test('that waits for a place of its account counts as no failure', async () => {
    const silent = await devices(alice, 3);
    const { release } = silence(silent);
    stage.start({ maxInFlightPerVendor: 8, timeoutMs: TIMEOUT_MS });
    await stage.post('first');
    // Two rows were claimed, returned and claimed again; the push of the third is being sent.
    const rows = await eventually(
      () => stage.pending(),
      (each) => each.filter(({ claimNumber }) => claimNumber > 1).length === 2,
    );
    expect(rows.map(({ attempts }) => attempts)).toEqual([0, 0, 0]);
    await stage.service('web').received(1);
    expect(told(silent)).toBe(1);
    release();
    await stage.settled(1);
    expect(await stage.logged()).toEqual([]);
  });

  test('to a phone is not bounded by account: its vendor answers for all', async () => {
    for (let n = 0; n < 8; n += 1) await stage.device(alice, 'google');
    const hanging = Promise.withResolvers<void>();
    stage.service('google').answer = () => hanging.promise.then(() => 200);
    stage.start({ maxInFlightPerVendor: 8, timeoutMs: TIMEOUT_MS });
    await stage.post('first');
    await stage.service('google').received(8);
    hanging.resolve();
    await stage.settled(1);
  });
});
