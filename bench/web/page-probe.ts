import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CDPSession, Page } from 'playwright-core';

/**
 * A condition that a page meets when it shows an element, or a text in one of the last elements that match a selector.
 */
export type Condition = { readonly present: string } | { readonly text: readonly [selector: string, part: string] };

/** The start of a page, as the page itself has measured it. The times count from the start of the navigation. */
export interface StartTimes {
  readonly readyMs: number;
  readonly largestPaintMs: number;
  readonly layoutShift: number;
  readonly blockingMs: number;
}

const script = (name: string): string => readFileSync(join(import.meta.dirname, 'page', name), 'utf8');
/** The probe's scripts are read as texts, since TypeScript's types for scripts of pages differ from those for Node. */
const PROBE = script('probe.js');
const RECORDERS = `${script('recorders.js')}\n${script('anchor.js')}`;

/** Defines `probe` in every document that this page opens, before the scripts of the document run. */
export async function addProbe(page: Page, start: readonly Condition[]): Promise<void> {
  await page.addInitScript({ content: `${PROBE}\n${RECORDERS}\nprobe.expectStart(${JSON.stringify(start)});` });
}

/** Resolves when a page that was opened with `addProbe` can be used. */
export function startTimes(page: Page): Promise<StartTimes> {
  return page.evaluate<StartTimes>('probe.start');
}

/** Returns the times from one event to the frame that meets each condition; `act` causes the event. */
export async function timeEvent(
  page: Page,
  { type, conditions }: { readonly type: 'keydown' | 'click'; readonly conditions: readonly Condition[] },
  act: () => Promise<void>,
): Promise<number[]> {
  await page.evaluate(`probe.expectEvent('${type}', ${JSON.stringify(conditions)})`);
  await act();
  return page.evaluate<number[]>('probe.taken');
}

/** Resolves to the bytes of heap that scripts of the page use after a collection. */
export async function heapBytes(cdp: CDPSession): Promise<number> {
  await cdp.send('HeapProfiler.enable');
  // Finalizers that run after the first collection release objects that only the second one can free.
  for (let n = 0; n < 2; n += 1) await cdp.send('HeapProfiler.collectGarbage');
  return (await cdp.send('Runtime.getHeapUsage')).usedSize;
}
