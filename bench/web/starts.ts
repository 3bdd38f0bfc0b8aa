import type { BrowserContext, Page } from 'playwright-core';
import { compareRounds, pick } from './compare.ts';
import { addProbe, startTimes, type StartTimes } from './page-probe.ts';
import type { Measures } from './rows.ts';
import { inTurns, withPage, type Side, type SideName } from './sides.ts';
import { within } from './within.ts';

const START_S = 60;
/**
 * The number of starts that do not count: a browser keeps compiled scripts only when a page is opened a second time.
 */
const WARM_UPS = 3;
const SLOW_CPU_RATE = 4;
/** Chromium's own figures for "Fast 3G": the delay of a request in ms, and bytes a second. */
const FAST_3G = { offline: false, latency: 562.5, downloadThroughput: 188_743, uploadThroughput: 86_400 };

/** Measures the time from the start of a navigation until the newest messages are painted and a person can write. */
export async function measureStarts(sides: readonly Side[], rounds: number): Promise<Measures> {
  const cold = await inTurns(sides, rounds, (side) => inNewProfile(side, (page) => start(page, side)));
  const slow = await inTurns(sides, rounds, (side) =>
    inNewProfile(side, async (page) => {
      const cdp = await page.context().newCDPSession(page);
      await cdp.send('Emulation.setCPUThrottlingRate', { rate: SLOW_CPU_RATE });
      await cdp.send('Network.enable');
      await cdp.send('Network.emulateNetworkConditions', FAST_3G);
      return start(page, side);
    }),
  );
  const warm = await warmStarts(sides, rounds);
  const ready = (results: Map<SideName, StartTimes[]>) => compareRounds(pick(results, ({ readyMs }) => readyMs));
  return {
    coldStart: ready(cold),
    warmStart: ready(warm),
    slowStart: ready(slow),
    largestPaint: compareRounds(pick(cold, ({ largestPaintMs }) => largestPaintMs)),
    layoutShift: compareRounds(pick(cold, ({ layoutShift }) => layoutShift)),
    blocking: compareRounds(pick(cold, ({ blockingMs }) => blockingMs)),
  };
}

async function warmStarts(sides: readonly Side[], rounds: number): Promise<Map<SideName, StartTimes[]>> {
  const profiles = new Map<SideName, BrowserContext>();
  const again = (side: Side): Promise<StartTimes> => withPage(profiles.get(side.name)!, (page) => start(page, side));
  try {
    for (const side of sides) profiles.set(side.name, await side.newProfile());
    await inTurns(sides, WARM_UPS, again);
    return await inTurns(sides, rounds, again);
  } finally {
    for (const profile of profiles.values()) await profile.close();
  }
}

async function inNewProfile<T>(side: Side, work: (page: Page) => Promise<T>): Promise<T> {
  const profile = await side.newProfile();
  try {
    return await withPage(profile, work);
  } finally {
    await profile.close();
  }
}

async function start(page: Page, side: Side): Promise<StartTimes> {
  await addProbe(page, side.conditionsOf(0));
  await page.goto(side.urlOf(0), { waitUntil: 'commit' });
  return within(START_S, `the start of ${side.name}`, startTimes(page));
}
