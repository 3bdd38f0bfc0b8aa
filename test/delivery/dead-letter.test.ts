import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { LaneFixture, seqs } from './fixtures/lane-fixture.ts';

let lane: LaneFixture;
beforeEach(async () => {
  lane = await LaneFixture.start();
});
afterEach(() => lane.stop());

/**
 * Posts the messages `from` to `to` while the hook is paused, so that all of them are stored before the first is sent.
 */
async function postTogether(from: number, to: number): Promise<void> {
  await lane.pause(true);
  await lane.post(from, to);
  await lane.pause(false);
}

const arrived = (): number[] => lane.receiver.arrivals.flatMap(seqs);
const refusing = (refused: readonly number[], status = 422) =>
  lane.register({}, (arrival) => (refused.includes(seqs(arrival)[0]!) ? status : 200));

describe('a strict hook whose target refuses a message', () => {
  test('sets it aside after the fifth refusal, when one behind it is accepted', async () => {
    await refusing([2]);
    await postTogether(1, 4);
    await lane.rowWhere((row) => row['cursor'] === 4);
    expect(arrived()).toEqual([1, 2, 2, 2, 2, 2, 3, 4]);
    const log = await lane.log();
    expect(log.filter((line) => line === '2 failed')).toHaveLength(5);
    expect(log.filter((line) => line.includes('dead_lettered'))).toEqual(['2 dead_lettered']);
    expect(await lane.row()).toMatchObject({ failures: 0, rejections: 0, last_error_code: 422 });
  });

  test('sets aside with it those that were refused before the one that was accepted', async () => {
    await refusing([1, 2, 3], 400);
    await postTogether(1, 5);
    await lane.rowWhere((row) => row['cursor'] === 5);
    expect(arrived()).toEqual([1, 1, 1, 1, 1, 2, 3, 4, 5]);
    expect((await lane.log()).filter((line) => line.includes('dead_lettered'))).toEqual([
      '1 dead_lettered',
      '2 dead_lettered',
      '3 dead_lettered',
    ]);
  });

  test('keeps its place when none of three behind it is accepted', async () => {
    await refusing([1, 2, 3, 4], 413);
    await postTogether(1, 6);
    const row = await lane.rowWhere(({ rejections }) => rejections >= 7);
    expect(row).toMatchObject({ cursor: 0, failures: row['rejections'] });
    const seen = arrived();
    // After the fifth refusal and each later one, the lane offers three messages, once each; it never tries later ones.
    expect(seen.slice(0, 8)).toEqual([1, 1, 1, 1, 1, 2, 3, 4]);
    expect(seen).not.toContain(5);
    expect((await lane.log()).join()).not.toContain('dead_lettered');
  });

  test('keeps its place when nothing is behind it, and goes on when something comes', async () => {
    await refusing([1]);
    await lane.post(1, 1);
    await lane.rowWhere(({ rejections }) => rejections >= 6);
    expect(new Set(arrived())).toEqual(new Set([1]));
    await lane.post(2, 2);
    await lane.rowWhere((row) => row['cursor'] === 2);
    expect(await lane.log()).toContain('1 dead_lettered');
  });

  test.each([401, 404, 500])(
    'holds everything back when the answer is %i: that is the hook, not the message',
    async (status) => {
      await refusing([1], status);
      await lane.post(1, 3);
      await lane.rowWhere((row) => row['failures'] >= 7);
      expect(new Set(arrived())).toEqual(new Set([1]));
      expect(await lane.row()).toMatchObject({ rejections: 0, cursor: 0 });
    },
  );

  test('is at fault when what is offered fails for another reason', async () => {
    await lane.register({}, (arrival) => (seqs(arrival)[0] === 1 ? 422 : 503));
    await postTogether(1, 4);
    await lane.rowWhere((row) => row['rejections'] >= 6);
    expect(new Set(arrived())).toEqual(new Set([1, 2]));
    expect((await lane.row())['cursor']).toBe(0);
  });
});
