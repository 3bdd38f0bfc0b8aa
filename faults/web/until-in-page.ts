import { setTimeout as wait } from 'node:timers/promises';
import { until } from '../until.ts';

/** Each question costs the page time that it would draw in. */
const POLL_MS = 150;

/** Like `until`, for what a page is asked. */
export function untilInPage(what: string, ask: () => Promise<boolean>): Promise<void> {
  return until(what, async () => {
    if (await ask()) return true;
    await wait(POLL_MS);
    return false;
  });
}
