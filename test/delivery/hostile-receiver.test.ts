import { setTimeout as wait } from 'node:timers/promises';
import { afterEach, describe, expect, test } from '@jest/globals';
import { LaneFixture } from './lane-fixture.ts';

const FIRST_WAIT_MS = 1_000;

let lane: LaneFixture;
afterEach(() => lane.stop());

describe('a receiver that fails and succeeds in turn', () => {
  test('does not have its failing messages repeated without a wait', async () => {
    lane = await LaneFixture.start({ delivery: { retryMs: [FIRST_WAIT_MS] } });
    const times: number[] = [];
    await lane.register({ order: 'none' }, async () => {
      if (times.push(performance.now()) % 8 !== 0) return 500;
      // What failed is written by then: a success after failures has all of it sent at once.
      await wait(100);
      return 200;
    });
    await lane.post(1, 12);
    await lane.receiver.received(60);
    expect(times[59]! - times[0]!).toBeGreaterThan(3 * FIRST_WAIT_MS);
  });
});
