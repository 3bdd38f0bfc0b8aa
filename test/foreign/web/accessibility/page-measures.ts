import type { Page } from 'playwright-core';

/**
 * Helpers as JavaScript text: the functions below run in the page, whose scripts have other types than those of Node.
 */
const HELPERS = `
  const nameOf = (each) => {
    const words = (each.getAttribute('aria-label') ?? each.textContent ?? '').trim().slice(0, 40);
    return each.localName + (each.className === '' ? '' : '.' + String(each.className).replaceAll(' ', '.')) + ' "' + words + '"';
  };
  const isShown = (each) => each.checkVisibility({ visibilityProperty: true }) && each.closest('.unseen') === null;
`;

/**
 * Finds elements that reach over an edge of the page, or that are scrolled sideways. Blocks of code are exempt: their
 * line breaks are part of their meaning.
 */
export function sidewaysOverflow(page: Page): Promise<string[]> {
  return page.evaluate<string[]>(`(() => {
    ${HELPERS}
    const found = [];
    const { scrollWidth } = document.scrollingElement;
    if (scrollWidth > innerWidth) found.push('the page is ' + scrollWidth + ' px wide');
    for (const each of document.querySelectorAll('body *')) {
      if (!isShown(each) || each.closest('.fence') !== null) continue;
      const { left, right, width } = each.getBoundingClientRect();
      if (width > 0 && (left < -1 || right > innerWidth + 1)) found.push(nameOf(each) + ' reaches over an edge');
      const { overflowX } = getComputedStyle(each);
      const isScrolled = (overflowX === 'auto' || overflowX === 'scroll') && each.scrollWidth > each.clientWidth + 1;
      if (isScrolled && each.localName !== 'input') found.push(nameOf(each) + ' is scrolled sideways');
    }
    return found;
  })()`);
}

/** Finds elements whose own text is cut off, other than by an ellipsis. */
export function cutText(page: Page): Promise<string[]> {
  return page.evaluate<string[]>(`(() => {
    ${HELPERS}
    const found = [];
    for (const each of document.querySelectorAll('body *')) {
      const hasText = [...each.childNodes].some(({ nodeType, data }) => nodeType === 3 && data.trim() !== '');
      if (!hasText || !isShown(each) || each.localName === 'option') continue;
      const { overflowX, overflowY, textOverflow } = getComputedStyle(each);
      const isCutBeside = overflowX !== 'visible' && overflowX !== 'auto' && textOverflow !== 'ellipsis';
      const isTooWide = each.scrollWidth > each.clientWidth + 1;
      const isTooHigh = each.scrollHeight > each.clientHeight + 1;
      if (isTooWide && (isCutBeside || each.localName === 'button')) found.push(nameOf(each) + ' is cut at its side');
      if (isTooHigh && (overflowY === 'hidden' || overflowY === 'clip')) found.push(nameOf(each) + ' is cut below');
    }
    return found;
  })()`);
}

/**
 * Finds controls that are smaller than 24 px. Links within a sentence are exempt, since they are as high as its line
 * (WCAG 2.5.8).
 */
export function smallTargets(page: Page): Promise<string[]> {
  return page.evaluate<string[]>(`(() => {
    ${HELPERS}
    const isInSentence = (each) => getComputedStyle(each).display === 'inline' &&
      [...each.parentElement.childNodes].some((other) => other !== each && other.textContent.trim() !== '');
    const found = [];
    for (const each of document.querySelectorAll('a[href], button, input, select, textarea, summary, [role=option]')) {
      if (!isShown(each) || isInSentence(each)) continue;
      const { width, height } = (each.closest('label') ?? each).getBoundingClientRect();
      if (width < 24 || height < 24)
        found.push(nameOf(each) + ' is ' + Math.round(width) + ' x ' + Math.round(height) + ' px');
    }
    return found;
  })()`);
}

/**
 * Finds elements that are hard to distinguish when the system's colours replace those of the page:
 * - chosen items that look like their neighbours,
 * - buttons without an edge, except links and names of people, which look like text everywhere.
 */
export function lostWithoutColours(page: Page): Promise<string[]> {
  return page.evaluate<string[]>(`(() => {
    ${HELPERS}
    const lookOf = (each) => {
      const style = getComputedStyle(each);
      const names = ['backgroundColor', 'color', 'outlineStyle', 'outlineWidth', 'borderTopStyle', 'borderTopWidth', 'textDecorationLine'];
      return names.map((name) => style[name]).join(' ');
    };
    const found = [];
    const pairs = [
      ['[role=option][aria-selected=true]', '[role=option][aria-selected=false]'],
      ['.item[aria-current]', '.item:not([aria-current])'],
      ['.dot.online', '.dot:not(.online)'],
    ];
    for (const [chosen, other] of pairs) {
      const [a, b] = [document.querySelector(chosen), document.querySelector(other)];
      if (a !== null && b !== null && isShown(a) && lookOf(a) === lookOf(b)) found.push(nameOf(a) + ' looks like ' + nameOf(b));
    }
    for (const each of document.querySelectorAll('button:not(.link, .person)')) {
      const { borderTopStyle, borderTopWidth } = getComputedStyle(each);
      if (isShown(each) && (borderTopStyle === 'none' || borderTopWidth === '0px')) found.push(nameOf(each) + ' has no edge');
    }
    return found;
  })()`);
}

/** Defines `focusProblems`: the reasons why a person cannot see the focus at an element; empty if they can. */
const FOCUS_PROBLEMS = `
  const focusProblems = (each) => {
    const problems = [];
    const style = getComputedStyle(each);
    if (!each.matches(':focus-visible')) problems.push('is not :focus-visible');
    if (style.outlineStyle === 'none' || Number.parseFloat(style.outlineWidth) < 2) problems.push('has no outline');
    const rect = each.getBoundingClientRect();
    const [left, right] = [Math.max(0, rect.left), Math.min(innerWidth, rect.right)];
    const [top, bottom] = [Math.max(0, rect.top), Math.min(innerHeight, rect.bottom)];
    if (left >= right || top >= bottom) return [...problems, 'is out of view'];
    const above = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
    const isSeen = above !== null && (each.contains(above) || (style.display === 'inline' && above.contains(each)));
    if (!isSeen) problems.push('is covered by ' + (above === null ? 'nothing' : nameOf(above)));
    return problems;
  };
`;

/**
 * Finds elements that Tab leads to and where a person would not see the focus, with a line for each problem. A script
 * focuses each element. One press of Tab comes first: from then on, the browser shows the focus as after a key.
 */
export async function unseenFocus(page: Page): Promise<string[]> {
  await page.keyboard.press('Tab');
  return page.evaluate<string[]>(`(() => {
    ${HELPERS}
    ${FOCUS_PROBLEMS}
    const within = [...document.querySelectorAll('dialog:modal')].at(-1) ?? document;
    const found = [];
    for (const each of within.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex]')) {
      if (each.tabIndex < 0 || each.disabled || !isShown(each)) continue;
      each.focus();
      if (document.activeElement !== each) found.push(nameOf(each) + ' takes no focus');
      else for (const problem of focusProblems(each)) found.push(nameOf(each) + ' ' + problem);
    }
    return found;
  })()`);
}

/** Sets the text size that a person can choose in the browser, in percent; resolves when the page uses it. */
export async function setTextSize(page: Page, percent: number): Promise<void> {
  const session = await page.context().newCDPSession(page);
  const standard = Math.round((16 * percent) / 100);
  await session.send('Page.setFontSizes', { fontSizes: { standard, fixed: Math.round((13 * percent) / 100) } });
  await page.waitForFunction(`getComputedStyle(document.documentElement).fontSize === '${standard}px'`);
}
