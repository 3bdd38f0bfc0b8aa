import { expect, test } from '@jest/globals';
import { waitOrUntilAborted } from '../../../client/core/wait.ts';
import { within } from '../../run/machine-speed.ts';

const LONG_MS = 1_000_000;

test('a wait ends after its time', async () => {
  const beganMs = performance.now();
  await waitOrUntilAborted(20, new AbortController().signal);
  expect(performance.now() - beganMs).toBeGreaterThan(15);
});

test('a wait ends at once when it is aborted, or was before it began', async () => {
  const beganMs = performance.now();
  const controller = new AbortController();
  const waiting = waitOrUntilAborted(LONG_MS, controller.signal);
  controller.abort();
  await waiting;
  await waitOrUntilAborted(LONG_MS, controller.signal);
  expect(performance.now() - beganMs).toBeLessThan(within(10_000));
});
