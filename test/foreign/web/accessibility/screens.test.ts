import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { SCREENS } from './screens.ts';
import { findingsIn, firstSizeOf } from './screen-findings.ts';
import { ScreenVisits, SIZES } from './screen-visits.ts';

let visits: ScreenVisits;
beforeAll(async () => {
  visits = await ScreenVisits.start();
});
afterAll(() => visits.stop());

test.each(SCREENS)('the screen $name can be used by everybody', async (screen) => {
  const size = firstSizeOf(screen);
  expect(await visits.visit(screen, { size }, (page) => findingsIn(page, screen))).toEqual([]);
});

test('a message that was jumped to flashes, and does not where a person wants no motion', async () => {
  const jumped = SCREENS.find(({ name }) => name === 'conversation-jumped')!;
  const animated = `[...document.querySelectorAll('*')].filter((each) => {
    const { animationName, transitionDuration } = getComputedStyle(each);
    return animationName !== 'none' || transitionDuration !== '0s';
  }).length`;
  await visits.visit(jumped, { size: SIZES.wide }, async (page) => {
    await page.emulateMedia({ reducedMotion: 'no-preference' });
    expect(await page.evaluate(animated)).toBeGreaterThan(0);
    await page.emulateMedia({ reducedMotion: 'reduce' });
    expect(await page.evaluate(animated)).toBe(0);
  });
});
