import { expect, test } from '@jest/globals';
import { filledSteps } from '../../web/screens/webhooks/filled-steps.ts';

const HOUR_MS = 3_600_000;

test('a chart has a place for each hour up to now, also for hours without requests', () => {
  const steps = [{ at: '2026-11-28T09:00:00.000Z' }, { at: '2026-11-28T11:00:00.000Z' }];
  const nowMs = Date.parse('2026-11-28T11:59:59Z');
  expect(filledSteps(steps, { count: 4, stepMs: HOUR_MS, nowMs })).toEqual([null, steps[0], null, steps[1]]);
});

test('a step that is older than the chart has no place in it', () => {
  const steps = [{ at: '2026-11-28T07:00:00.000Z' }];
  const nowMs = Date.parse('2026-11-28T11:00:00Z');
  expect(filledSteps(steps, { count: 4, stepMs: HOUR_MS, nowMs })).toEqual([null, null, null, null]);
});
