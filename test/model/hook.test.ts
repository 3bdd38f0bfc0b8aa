import { expect, test } from '@jest/globals';
import { hookState } from '../../src/model/hook.ts';

const DAY_MS = 86_400_000;
const now = Date.parse('2026-11-21T10:00:00Z');
const healthy = { pausedAt: null, failures: 0, failingSince: null };
const failing = (ageMs: number) => ({ ...healthy, failures: 3, failingSince: new Date(now - ageMs) });

test.each([
  ['active', healthy],
  ['failing', failing(1_000)],
  ['failing', failing(3 * DAY_MS - 1)],
  ['parked', failing(3 * DAY_MS)],
  ['paused', { ...failing(9 * DAY_MS), pausedAt: new Date(now) }],
  ['paused', { ...healthy, pausedAt: new Date(now) }],
])('a hook reads as %s for what it went through', (state, health) => {
  expect(hookState(health, now, 3 * DAY_MS)).toBe(state);
});
