import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { LaneFixture } from '../../delivery/fixtures/lane-fixture.ts';

interface Stats {
  readonly id: number;
  readonly group: number;
  readonly steps: { at: string; delivered: number; failed: number; p50_ms: number | null; p95_ms: number | null }[];
}

let lane: LaneFixture;
beforeAll(async () => {
  lane = await LaneFixture.start();
});
afterAll(() => lane.stop());

const stats = (input: object = {}): Promise<Stats> => lane.server.operate('hooks.stats', { hook: lane.hook, ...input });
const sum = (answer: Stats, key: 'delivered' | 'failed'): number =>
  answer.steps.reduce((total, step) => total + step[key], 0);

test('hooks.stats counts the requests that were settled, in steps that were asked for', async () => {
  let failures = 2;
  await lane.register({}, () => ((failures -= 1) >= 0 ? 500 : 200));
  expect(await stats()).toEqual({ id: lane.hook, group: lane.group.id, steps: [] });
  await lane.post(1, 3);
  await lane.rowWhere(({ cursor }) => cursor === 3);
  const counted = await stats();
  expect([sum(counted, 'delivered'), sum(counted, 'failed')]).toEqual([3, 2]);
  expect(counted.steps[0]!.at).toMatch(/T\d\d:00:00\.000Z$/);
  expect(counted.steps[0]!.p95_ms).not.toBeNull();
  // These counts are five hours older, so they are in another step of the statistics, and outside of a shorter period.
  await lane.server.database.query(
    (sql) => sql`
      insert into hook_stats (conversation_id, hook_id, five_minutes, delivered, failed, durations)
      select conversation_id, hook_id, five_minutes - interval '5 hours', 7, 0, array_fill(0, array[11]) || 7
      from hook_stats order by five_minutes limit 1`,
  );
  expect(sum(await stats(), 'delivered')).toBe(10);
  expect(sum(await stats({ hours: 1 }), 'delivered')).toBe(3);
  const steps = (await stats()).steps;
  expect(steps[0]).toMatchObject({ delivered: 7, failed: 0, p50_ms: null, p95_ms: null });
  expect(steps.map(({ at }) => at)).toEqual(steps.map(({ at }) => at).sort());
  for (const step of ['5m', '1d']) expect(sum(await stats({ step }), 'delivered')).toBe(10);
  for (const wrong of [{ hours: 0 }, { hours: 169 }, { step: '1m' }])
    await expect(stats(wrong)).rejects.toThrow(/^(hours|step): /);
});
