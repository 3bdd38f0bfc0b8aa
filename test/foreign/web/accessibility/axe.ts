import axe from 'axe-core';
import type { Page } from 'playwright-core';

/** WCAG 2.2 A and AA, and what axe holds to be good practice beside them. */
const TAGS = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
const RESULT_TYPES: axe.RunOptions['resultTypes'] = ['violations', 'incomplete'];
/** `colours`: the rules whose results another colour scheme changes. */
const RULES: Readonly<Record<'all' | 'colours', axe.RunOptions>> = {
  all: { runOnly: { type: 'tag', values: TAGS }, resultTypes: RESULT_TYPES },
  colours: { runOnly: ['color-contrast', 'link-in-text-block'], resultTypes: RESULT_TYPES },
};

/**
 * What axe cannot tell of buttons whose content is a sign such as ← beside a label, and of empty fields. Their colours
 * are those of texts, which axe checks.
 */
const UNDECIDABLE = [
  'color-contrast: Element content contains only non-text characters',
  'label-content-name-mismatch: Unable to determine if the visible text is part of the accessible name',
  'color-contrast: Element has no value; test color contrast with a value entered',
];
/** For axe a dialog is under the page as long as it has no z-index: it does not know the top layer. */
const RAISE_DIALOGS = 'for (const each of document.querySelectorAll("dialog[open]")) each.style.zIndex = "2147483647"';

/**
 * What axe finds in a page, one line an element; empty where it finds nothing. Findings that axe leaves to a person are
 * among them, except `UNDECIDABLE`. The script comes over the protocol of the browser, so that the
 * Content-Security-Policy stays on.
 */
export async function axeFindings(page: Page, rules: keyof typeof RULES): Promise<string[]> {
  if (!(await page.evaluate<boolean>('"axe" in window'))) await page.evaluate(axe.source);
  await page.evaluate(RAISE_DIALOGS);
  const results = await page.evaluate<axe.AxeResults>(`axe.run(document, ${JSON.stringify(RULES[rules])})`);
  const { passes } = results;
  if (passes.length === 0) throw new Error('axe has checked nothing');
  return [...results.violations, ...results.incomplete].flatMap(({ id, nodes }) =>
    nodes.flatMap(({ target, any, all, none }) => {
      const reasons = [...any, ...all, ...none].map(({ message }) => message).join('; ');
      return UNDECIDABLE.includes(`${id}: ${reasons}`) ? [] : [`${id} at ${target.join(' ')}: ${reasons}`];
    }),
  );
}
