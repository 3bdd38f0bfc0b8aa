import { setTimeout as wait } from 'node:timers/promises';
import { until } from '../until.ts';

/** Each poll takes time in which the page could draw. */
const POLL_MS = 150;

/** Does the same as `until` for a condition in a page, and polls less often. */
export function untilInPage(what: string, ask: () => Promise<boolean>): Promise<void> {
  return until(what, async () => {
    if (await ask()) return true;
    await wait(POLL_MS);
    return false;
  });
}
