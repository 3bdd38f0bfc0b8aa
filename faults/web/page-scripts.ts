/** These scripts, which run in a page, are texts: scripts of pages have other types than those of Node. */

/**
 * Checks the shown rows at every change of the page, from its beginning on. The texts of all messages have to differ.
 * `klatchView.violations` names:
 * - a message that is shown twice, or after a later one;
 * - a message that is shown with another text than before;
 * - a row that does not follow the row before it, or whose seq does not fit its index.
 */
export const WATCH_VIEW = `(() => {
  const MAX_VIOLATIONS = 20;
  const textsByFeed = new Map();
  const violations = new Set();
  const view = (globalThis.klatchView = { violations, newest: 0, hidden: new Set() });
  let pendingBefore = new Set();
  let shownNow = new Set();
  const missing = new Set();
  // A timer that is set within a frame runs after the frame is painted.
  const checkPainted = () => {
    for (const text of missing) if (!shownNow.has(text)) view.hidden.add(text);
    missing.clear();
  };
  const violated = (sentence) => {
    if (violations.size < MAX_VIOLATIONS) violations.add(sentence);
  };
  const textOf = (message) => message.querySelector('.text')?.textContent ?? '';
  const check = () => {
    const feed = document.querySelector('.feed');
    if (feed === null) return;
    const label = feed.getAttribute('aria-label');
    const texts = textsByFeed.get(label) ?? new Map();
    textsByFeed.set(label, texts);
    const shown = new Set();
    const show = (text) => {
      if (shown.has(text)) violated('"' + text + '" was shown twice');
      shown.add(text);
    };
    let [indexBefore, newest, firstSeq] = [null, 0, null];
    for (const row of feed.querySelectorAll('.feed-rows > .row')) {
      const index = Number(row.dataset.index);
      if (indexBefore !== null && index !== indexBefore + 1) violated('row ' + index + ' followed row ' + indexBefore);
      indexBefore = index;
      const article = row.querySelector('article');
      if (article === null) continue;
      const seq = Number(article.getAttribute('aria-posinset'));
      if (seq <= newest) violated('message ' + seq + ' was shown behind message ' + newest);
      if (firstSeq !== null && seq - index !== firstSeq) violated('message ' + seq + ' was in the row of another');
      [newest, firstSeq] = [seq, seq - index];
      const text = textOf(article);
      if ((texts.get(seq) ?? text) !== text) violated('message ' + seq + ' was shown with two texts');
      texts.set(seq, text);
      show(text);
    }
    const pending = [...feed.querySelectorAll('.message.pending')];
    for (const each of pending) show(textOf(each));
    shownNow = shown;
    for (const text of pendingBefore) {
      if (shown.has(text)) continue;
      if (missing.size === 0) requestAnimationFrame(() => setTimeout(checkPainted));
      missing.add(text);
    }
    // A tab that opens at its first unread message has the waiting texts below the view, and draws no row there.
    const { top, bottom } = feed.getBoundingClientRect();
    const isInView = (each) => each.getBoundingClientRect().bottom > top && each.getBoundingClientRect().top < bottom;
    pendingBefore = new Set(pending.filter(isInView).map(textOf));
    view.newest = newest;
  };
  new MutationObserver(check).observe(document, { subtree: true, childList: true, characterData: true });
})()`;

/** The results of `WATCH_VIEW` so far. */
export interface FoundInView {
  readonly violations: readonly string[];
  /** The greatest seq among the rows that are drawn. */
  readonly newest: number;
  /** Texts that were in view as being sent, and were not in a frame that was painted afterwards. */
  readonly hidden: readonly string[];
}

export const FOUND_IN_VIEW = `(() => {
  const { violations, newest, hidden } = globalThis.klatchView;
  return { violations: [...violations], newest, hidden: [...hidden] };
})()`;

/** A message as a page shows it. */
export type ShownMessage = readonly [seq: number, text: string];

/**
 * Scrolls from the end of the open conversation up to `seq`. Resolves to the messages whose rows were in view, each
 * read when all rows in view had their content. Rejects if a row stays empty, or if the page is not drawn, for a time
 * that only a hang exceeds. If the script runs again with the same `walk`, it returns the result of the walk that has
 * begun.
 */
export const walkViewTo = (
  seq: number,
  walk = 1,
): string => `(globalThis.klatchWalks ??= {})[${walk}] ??= (async () => {
  const ROW_MS = 240_000;
  const feed = document.querySelector('.feed');
  const frame = () =>
    new Promise((resolve, reject) => {
      const late = () => reject(new Error('the page, which is ' + document.visibilityState + ', was not drawn'));
      const timer = setTimeout(late, ROW_MS);
      requestAnimationFrame(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  const isInView = (row, view) => {
    const { top, bottom } = row.getBoundingClientRect();
    return bottom > view.top && top < view.bottom;
  };
  const scrollBy = (px) => {
    feed.scrollTop += px;
    // As with a wheel: the list hears of it before it is drawn again, and so does not return to its end.
    feed.dispatchEvent(new Event('scroll'));
  };
  const shown = [];
  // Of what was seen so far without a gap.
  let lowest = null;
  let deadline = performance.now() + ROW_MS;
  for (;;) {
    if (performance.now() > deadline) throw new Error('the rows before message ' + lowest + ' stay empty');
    await frame();
    await frame();
    const view = feed.getBoundingClientRect();
    const rows = [...feed.querySelectorAll('.feed-rows > .row')].filter((row) => isInView(row, view));
    const articles = rows.map((row) => row.querySelector('article'));
    if (rows.length === 0 || articles.includes(null)) {
      continue;
    }
    const seqs = articles.map((article) => Number(article.getAttribute('aria-posinset')));
    if (lowest !== null && seqs.at(-1) < lowest - 1) {
      scrollBy(feed.clientHeight / 2);
      continue;
    }
    for (const [n, article] of articles.entries())
      shown.push([seqs[n], article.querySelector('.text')?.textContent ?? '']);
    if (lowest === null || seqs[0] < lowest) deadline = performance.now() + ROW_MS;
    lowest = Math.min(lowest ?? Infinity, seqs[0]);
    if (lowest <= ${seq} || feed.scrollTop <= 0) break;
    scrollBy(-feed.clientHeight * 0.8);
  }
  document.querySelector('.to-newest')?.click();
  return shown;
})()`;

/** The texts that the page shows as being sent. */
export const WAITING_TEXTS = `[...document.querySelectorAll('.message.pending .text')].map(({ textContent }) => textContent)`;

const keptTexts = (store: string): string => `new Promise((resolve, reject) => {
  const open = indexedDB.open('klatch/');
  open.onerror = () => reject(open.error);
  open.onsuccess = () => {
    const all = open.result.transaction('${store}').objectStore('${store}').getAll();
    all.onerror = () => reject(all.error);
    all.onsuccess = () => {
      open.result.close();
      // As the page sends what it finds; drafts have no time.
      const inOrder = all.result.sort((a, b) => (a.createdAt ?? 0) - (b.createdAt ?? 0));
      resolve(inOrder.map(({ text }) => text));
    };
  };
})`;

/** Reads the texts of the drafts that the browser stores. */
export const KEPT_DRAFTS = keptTexts('drafts');

/** Reads the unsent texts of all tabs that the browser stores, in the order in which they were written. */
export const KEPT_UNSENT = keptTexts('unsent');
