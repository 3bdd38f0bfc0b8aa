import { setTimeout as wait } from 'node:timers/promises';

const POLL_MS = 20;

/**
 * Only a hang exceeds this time. It is shorter than the `testTimeout` of jest, so that the failure shows the last
 * answer. It measures no speed: no caller can pass a shorter one.
 */
export const HANG_MS = 240_000;

/**
 * Polls until the answer is right. It is for states that are visible only from outside (a row, an answer over HTTP).
 * Fails with the last answer.
 */
export async function eventually<T>(ask: () => T | Promise<T>, right: (answer: T) => boolean): Promise<T> {
  const deadline = performance.now() + HANG_MS;
  for (;;) {
    const answer = await ask();
    if (right(answer)) return answer;
    if (performance.now() > deadline) throw new Error(`still not right after ${HANG_MS} ms: ${JSON.stringify(answer)}`);
    await wait(POLL_MS);
  }
}
