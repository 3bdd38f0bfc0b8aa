import { setTimeout as wait } from 'node:timers/promises';

const POLL_MS = 20;

/**
 * Asks until the answer is right, for what can only be seen from outside (a row, an answer over HTTP). Fails with the
 * last answer, so that a test says what it saw.
 */
export async function eventually<T>(
  ask: () => T | Promise<T>,
  right: (answer: T) => boolean,
  timeoutMs = 10_000,
): Promise<T> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const answer = await ask();
    if (right(answer)) return answer;
    if (performance.now() > deadline)
      throw new Error(`still not right after ${timeoutMs} ms: ${JSON.stringify(answer)}`);
    await wait(POLL_MS);
  }
}
