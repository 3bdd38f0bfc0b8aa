import type { Page } from 'playwright-core';
import { median } from '../support/report.ts';
import { compareRounds, pick } from './compare.ts';
import { addProbe, startTimes, timeEvent } from './page-probe.ts';
import type { Measures } from './rows.ts';
import { inTurns, type Side, type SideName } from './sides.ts';
import { within } from './within.ts';

const STEP_S = 60;

/**
 * Measures the times of switching between conversations and of sending own messages. Each side has one page, which
 * stays open.
 */
export async function measureUse(
  sides: readonly Side[],
  { rounds, ownMessages }: { readonly rounds: number; readonly ownMessages: number },
): Promise<Measures> {
  const pages = new Map<SideName, Page>();
  try {
    for (const side of sides) pages.set(side.name, await open(side));
    const page = ({ name }: Side): Page => pages.get(name)!;
    const switches = await inTurns(sides, rounds, async (side, round) => {
      const fetched = await switchTo(page(side), side, round + 1);
      await switchTo(page(side), side, 0);
      return { fetched, cached: await switchTo(page(side), side, round + 1) };
    });
    for (const side of sides) await switchTo(page(side), side, 0);
    const own = await inTurns(sides, rounds, (side, round) =>
      sendSome(page(side), side, { count: ownMessages, prefix: `own ${round}` }),
    );
    return {
      switchFetched: compareRounds(pick(switches, ({ fetched }) => fetched)),
      switchCached: compareRounds(pick(switches, ({ cached }) => cached)),
      ownShown: compareRounds(pick(own, ({ shown }) => shown)),
      ownConfirmed: compareRounds(pick(own, ({ confirmed }) => confirmed)),
    };
  } finally {
    for (const page of pages.values()) await page.context().close();
  }
}

async function open(side: Side): Promise<Page> {
  const page = await (await side.newProfile()).newPage();
  await addProbe(page, side.conditionsOf(0));
  await page.goto(side.urlOf(0), { waitUntil: 'commit' });
  await within(STEP_S, `the start of ${side.name}`, startTimes(page));
  return page;
}

/** Returns the time from the click to the frame that shows the newest message. */
async function switchTo(page: Page, side: Side, conversation: number): Promise<number> {
  const conditions = side.conditionsOf(conversation).slice(0, 2);
  const times = await within(
    STEP_S,
    `a switch of ${side.name}`,
    timeEvent(page, { type: 'click', conditions }, () => page.locator(side.linkTo(conversation)).first().click()),
  );
  return Math.max(...times);
}

/** Returns the medians of the times from Enter to the frames that show the message, and that show it as confirmed. */
async function sendSome(
  page: Page,
  side: Side,
  { count, prefix }: { readonly count: number; readonly prefix: string },
): Promise<{ shown: number; confirmed: number }> {
  const all: number[][] = [];
  for (let n = 0; n < count; n += 1) {
    const text = `${prefix}.${n} of ${side.name}`;
    await page.locator(side.field).first().fill(text);
    const conditions = [side.shown, side.confirmed].map((selector) => ({ text: [selector, text] as const }));
    const send = timeEvent(page, { type: 'keydown', conditions }, () => page.keyboard.press('Enter'));
    all.push(await within(STEP_S, `an own message of ${side.name}`, send));
  }
  const middle = (at: number): number => median(all.map((times) => times[at]!));
  return { shown: middle(0), confirmed: middle(1) };
}
