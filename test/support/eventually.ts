import { setTimeout as wait } from 'node:timers/promises';

const POLL_MS = 20;

/** Catches a hang. It is no measure of speed: a slow machine must pass, too. */
const HANG_MS = 60_000;

/**
 * Asks until the answer is right, for what can only be seen from outside (a row, an answer over HTTP). Fails with the
 * last answer, so that a test says what it saw.
 */
export async function eventually<T>(
  ask: () => T | Promise<T>,
  right: (answer: T) => boolean,
  timeoutMs = HANG_MS,
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
