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
/**
 * The quality of the WebP pictures, which have a third of the size of PNG. Small texts have no visible blur at this
 * quality.
 */
const QUALITY = 50;

/**
 * Names of states of a screen that differ from it only by a sentence. With them, `docs/web` would have twice the size.
 */
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

/** Takes a picture as WebP, which Playwright's own screenshots do not offer. */
async function pictureOf(page: Page): Promise<Buffer> {
  const session = await page.context().newCDPSession(page);
  const { data } = await session.send('Page.captureScreenshot', { format: 'webp', quality: QUALITY });
  await session.detach();
  return Buffer.from(data, 'base64');
}
