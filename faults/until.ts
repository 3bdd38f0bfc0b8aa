import { setTimeout as wait } from 'node:timers/promises';

/** Only a hang exceeds this time: every condition of a run comes true within it, on slow machines too. */
const UNTIL_MS = 240_000;
const POLL_MS = 20;

/** Polls until `ask` returns true. Rejects after `timeoutMs`, with `what`, the description of the condition. */
export async function until(what: string, ask: () => boolean | Promise<boolean>, timeoutMs = UNTIL_MS): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  while (!(await ask())) {
    if (performance.now() > deadline) throw new Error(`waited ${timeoutMs / 1000} s in vain until ${what}`);
    await wait(POLL_MS);
  }
}
