import { describe, expect, test } from '@jest/globals';
import { LoopDetector } from '../../../src/delivery/loops/loop-detector.ts';

const START_MS = Date.UTC(2026, 10, 21, 10, 0, 0);
const MINUTE_MS = 60_000;

/**
 * Reports a series of posts to the detector, each delivered `deliveredAfterMs` later. Returns the time at which the
 * series ends.
 */
function post(
  detector: LoopDetector,
  { fromMs = START_MS, minutes = 1, everyMs = 500, deliveredAfterMs = 10 },
): number {
  const endMs = fromMs + minutes * MINUTE_MS;
  for (let atMs = fromMs; atMs < endMs; atMs += everyMs) detector.observeDelivery(atMs, atMs + deliveredAfterMs);
  return endMs;
}

describe('a loop', () => {
  test('shows after five minutes of more than 60 posts, each right after a delivery', () => {
    const detector = new LoopDetector();
    const almost = post(detector, { minutes: 5 });
    expect(detector.isLoop(almost - 1)).toBe(false);
    expect(detector.isLoop(almost)).toBe(true);
  });

  test('shows until a minute has passed without it', () => {
    const detector = new LoopDetector();
    const end = post(detector, { minutes: 6 });
    expect(detector.isLoop(end + MINUTE_MS - 1)).toBe(true);
    expect(detector.isLoop(end + MINUTE_MS)).toBe(false);
    expect(detector.isLoop(end + 10 * MINUTE_MS)).toBe(false);
  });

  test('shows also where several posts go round, each a while behind its delivery', () => {
    const detector = new LoopDetector();
    expect(detector.isLoop(post(detector, { minutes: 6, everyMs: 200, deliveredAfterMs: 30_000 }))).toBe(true);
  });

  test.each([
    ['60 posts a minute', { minutes: 10, everyMs: 1_000 }],
    ['a backlog of two minutes', { minutes: 10, everyMs: 900, deliveredAfterMs: 120_000 }],
    ['a message now and then', { minutes: 60, everyMs: 30_000 }],
  ])('is not seen in %s', (_what, posts) => {
    const detector = new LoopDetector();
    expect(detector.isLoop(post(detector, posts))).toBe(false);
  });

  test('begins again after a quiet minute', () => {
    const detector = new LoopDetector();
    const quiet = post(detector, { minutes: 4 }) + MINUTE_MS;
    const end = post(detector, { fromMs: quiet, minutes: 4 });
    expect(detector.isLoop(end)).toBe(false);
    expect(detector.isLoop(post(detector, { fromMs: end }))).toBe(true);
  });
});
