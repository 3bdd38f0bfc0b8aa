/** Texts, since scripts of pages have other types than those of Node. */

/** A message as a page shows it. */
export type ShownMessage = readonly [seq: number, text: string];

/**
 * Scrolls from the end of the open conversation up to a seq, and resolves to the messages whose rows were in view, each
 * at the moment in which all rows in view had their content. Rejects where a row gets none within 60 s.
 */
export const walkViewTo = (seq: number): string => `(async () => {
  const ROW_MS = 60_000;
  const feed = document.querySelector('.feed');
  const frame = () => new Promise(requestAnimationFrame);
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
