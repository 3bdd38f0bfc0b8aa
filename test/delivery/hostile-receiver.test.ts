import { setTimeout as wait } from 'node:timers/promises';
import { afterEach, describe, expect, test } from '@jest/globals';
import { eventually } from '../support/eventually.ts';
import { ask } from '../contract/hook-fixture.ts';
import { postJson } from '../support/server.ts';
import { LaneFixture } from './fixtures/lane-fixture.ts';

const FIRST_WAIT_MS = 1_000;

let lane: LaneFixture;
afterEach(() => lane.stop());

describe('a receiver that fails and succeeds in turn', () => {
  test('does not have its failing messages repeated without a wait', async () => {
    lane = await LaneFixture.start({ delivery: { retryDelaysMs: [FIRST_WAIT_MS] } });
    const times: number[] = [];
    await lane.register({ order: 'none' }, async () => {
      if (times.push(performance.now()) % 8 !== 0) return 500;
      // A success after failures makes all retry rows due at once. The wait lets the server write the failures first.
      await wait(100);
      return 200;
    });
    await lane.post(1, 12);
    await lane.receiver.received(60);
    expect(times[59]! - times[0]!).toBeGreaterThan(3 * FIRST_WAIT_MS);
  });
});

describe('hooks that are slow', () => {
  test('share half of the slots also after they were changed, which gives each a new lane', async () => {
    lane = await LaneFixture.start({ delivery: { maxInFlightPerHost: 4 } });
    let open = 0;
    let most = 0;
    lane.receiver.answer = async () => {
      most = Math.max(most, (open += 1));
      // The delay is slightly longer than the time from which a lane counts as slow.
      await wait(1_050);
      open -= 1;
      return 200;
    };
    const hooks: number[] = [];
    for (let n = 0; n < 4; n += 1)
      hooks.push((await postJson(`${lane.group.webhook}/reverse`, { url: lane.receiver.url(`/${n}`) })).body.id);
    const settled = (): Promise<unknown> =>
      eventually(
        async () => (await ask('GET', `${lane.group.webhook}/reverse`)).body,
        (all: { pending: number }[]) => all.every(({ pending }) => pending === 0),
      );
    await lane.post(1, 1);
    await settled();
    expect(most).toBe(4);
    for (const id of hooks) await ask('PATCH', `${lane.group.webhook}/reverse/${id}`, { batch: 2 });
    most = 0;
    await lane.post(2, 2);
    await settled();
    expect(lane.receiver.arrivals).toHaveLength(8);
    expect(most).toBe(2);
  });
});
