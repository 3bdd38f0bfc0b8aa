import type { Page } from 'playwright-core';
import { axeFindings } from './axe.ts';
import {
  cutText,
  lostWithoutColours,
  setTextSize,
  sidewaysOverflow,
  smallTargets,
  unseenFocus,
} from './page-measures.ts';
import { SIZES, widthsOf, type Screen } from './screen-visits.ts';

/**
 * The height of the window, so that nothing is scrolled out of view: axe cannot tell the contrast of covered elements.
 */
const HEIGHT = 2_400;
/** The size of a page of 1280 px that is enlarged to 400 %: WCAG 1.4.10 requires this width. */
const ENLARGED = { width: 320, height: 640 };

/** The size in which a screen is opened for `findingsIn`. */
export function firstSizeOf(screen: Screen): { readonly width: number; readonly height: number } {
  return { ...SIZES[widthsOf(screen)[0]!], height: HEIGHT };
}

/**
 * The problems of a screen, one line each. The screen is opened once; then its size, its colours and its text size
 * change in place.
 */
export async function findingsIn(page: Page, screen: Screen): Promise<string[]> {
  const findings: string[] = [];
  const add = (where: string, found: readonly string[]): void =>
    void findings.push(...found.map((each) => `${where}: ${each}`));
  for (const [at, width] of widthsOf(screen).entries()) {
    await resize(page, { ...SIZES[width], height: HEIGHT });
    // In the new size, another element may be under the pointer.
    if (at > 0) await page.mouse.move(0, 0);
    add(`${width}, light`, await axeFindings(page, 'all'));
    await page.emulateMedia({ colorScheme: 'dark' });
    add(`${width}, dark`, await axeFindings(page, 'colours'));
    await page.emulateMedia({ colorScheme: 'light', forcedColors: 'active' });
    add(`${width}, forced colours`, await lostWithoutColours(page));
    await page.emulateMedia({ forcedColors: 'none' });
    await resize(page, SIZES[width]);
    await setTextSize(page, 200);
    add(`${width}, text of 200 %`, [...(await sidewaysOverflow(page)), ...(await cutText(page))]);
    await setTextSize(page, 100);
  }
  const width = screen.width === 'wide' ? 'wide' : 'enlarged';
  await resize(page, screen.width === 'wide' ? SIZES.wide : ENLARGED);
  add(width, [...(await sidewaysOverflow(page)), ...(await smallTargets(page)), ...(await unseenFocus(page))]);
  return findings;
}

async function resize(page: Page, size: { readonly width: number; readonly height: number }): Promise<void> {
  await page.setViewportSize(size);
  // The page has drawn its reaction to the new size with the second frame.
  await page.evaluate('new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))');
}
