/**
 * `npm run web-pictures`: takes a picture of every screen in both widths, light and dark, into docs/web/, without
 * `STATES`. Needs Debian's Chromium. `npm run web-pictures -- sign-in search` takes only those of the named screens.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import globalSetup from '../../../run/global-setup.ts';
import globalTeardown from '../../../run/global-teardown.ts';
import { ScreenVisits, SIZES, widthsOf } from './screen-visits.ts';
import { SCREENS } from './screens.ts';

const FOLDER = join(import.meta.dirname, '../../../../docs/web');
const SCHEMES = ['light', 'dark'] as const;
/** WebP: a third of the size of PNG. At this quality small texts have no visible blur. */
const QUALITY = 50;

/** States of a screen that differ from it by a sentence; `docs/web` would have twice the size with them. */
const STATES: readonly string[] = [
  'sign-in-code-wrong',
  'sign-in-code-over',
  'sign-in-link-alone',
  'invitation-over',
  'session-expired',
  'session-replaced',
  'loading',
  'another-link-opened',
  'conversation-archived',
  'conversation-unknown',
  'conversation-jumped',
  'conversation-not-loaded',
  'conversation-cannot-load',
  'conversation-typing',
  'message-deleted-soon',
  'action-refused',
  'search-without-result',
];

const names = process.argv.slice(2);
const chosen = SCREENS.filter(({ name }) => (names.length === 0 ? !STATES.includes(name) : names.includes(name)));
if (chosen.length < names.length)
  throw new Error(`there are only the screens ${SCREENS.map((each) => each.name).join(', ')}`);
mkdirSync(FOLDER, { recursive: true });
await globalSetup();
const visits = await ScreenVisits.start();
try {
  for (const screen of chosen)
    for (const width of widthsOf(screen))
      await visits.visit(screen, { size: SIZES[width] }, async (page) => {
        for (const colorScheme of SCHEMES) {
          await page.emulateMedia({ colorScheme });
          writeFileSync(
            join(FOLDER, `${screen.name}-${SIZES[width].width}-${colorScheme}.webp`),
            await pictureOf(page),
          );
        }
      });
} finally {
  await visits.stop();
  await globalTeardown();
}

/** Playwright's own screenshots have no WebP. */
async function pictureOf(page: Page): Promise<Buffer> {
  const session = await page.context().newCDPSession(page);
  const { data } = await session.send('Page.captureScreenshot', { format: 'webp', quality: QUALITY });
  await session.detach();
  return Buffer.from(data, 'base64');
}
