import axe from 'axe-core';
import type { Page } from 'playwright-core';

/** The rules of WCAG 2.2 A and AA, and those that axe calls best practices. */
const TAGS = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
const RESULT_TYPES: axe.RunOptions['resultTypes'] = ['violations', 'incomplete'];
/** The rules of a check. `colours`: those whose results depend on the colour scheme. */
const RULES: Readonly<Record<'all' | 'colours', axe.RunOptions>> = {
  all: { runOnly: { type: 'tag', values: TAGS }, resultTypes: RESULT_TYPES },
  colours: { runOnly: ['color-contrast', 'link-in-text-block'], resultTypes: RESULT_TYPES },
};

/**
 * Findings that axe leaves to a person and that are left out here. They are about buttons with a sign such as ← and a
 * label, and about empty fields, which have the colours of texts that axe checks.
 */
const UNDECIDABLE = [
  'color-contrast: Element content contains only non-text characters',
  'label-content-name-mismatch: Unable to determine if the visible text is part of the accessible name',
  'color-contrast: Element has no value; test color contrast with a value entered',
];
/** axe does not know the top layer of a page: without a z-index, it takes a dialog as covered by the page. */
const RAISE_DIALOGS = 'for (const each of document.querySelectorAll("dialog[open]")) each.style.zIndex = "2147483647"';

/**
 * The findings of axe in a page, one line for each element. They include those that axe leaves to a person, except
 * `UNDECIDABLE`. The script of axe is injected through the protocol of the browser, so the Content-Security-Policy
 * stays on.
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
