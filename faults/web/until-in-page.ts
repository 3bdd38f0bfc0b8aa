import { setTimeout as wait } from 'node:timers/promises';
import { until } from '../until.ts';

/** A poll takes time that the page needs for drawing, so polls are rare. */
const POLL_MS = 150;

/** Like `until`, for a condition in a page: it polls less often. */
export function untilInPage(what: string, ask: () => Promise<boolean>): Promise<void> {
  return until(what, async () => {
    if (await ask()) return true;
    await wait(POLL_MS);
    return false;
  });
}
