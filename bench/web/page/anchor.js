/** Adds the anchor to `probe`: the first message that begins in view. It may move only when somebody scrolls. */
{
  const { probe } = globalThis;

  const rowOf = (index) => document.querySelector(`.feed [data-index="${index}"]`);
  const topOf = (row) => row.getBoundingClientRect().top - document.querySelector('.feed').getBoundingClientRect().top;

  /**
   * The position at which a row is painted, below the top of the list. Between two frames, the layout may already have
   * the new size of a window. Resize observers, which put rows back, run later in that frame. An intersection observer
   * reports the state after them.
   */
  const paintedTop = (row) =>
    new Promise((resolve) => {
      const observer = new IntersectionObserver(
        ([{ boundingClientRect, rootBounds }]) => {
          observer.disconnect();
          resolve(boundingClientRect.top - rootBounds.top);
        },
        { root: document.querySelector('.feed') },
      );
      observer.observe(row);
    });

  const firstInView = () => {
    const { clientHeight } = document.querySelector('.feed');
    return [...document.querySelectorAll('.feed .row')].find(
      (row) => row.querySelector('article') !== null && topOf(row) >= 0 && topOf(row) < clientHeight,
    );
  };

  /** Starts to watch the anchor; false if no message is in view. */
  probe.watchAnchor = () => {
    const row = firstInView();
    if (row === undefined) return false;
    const { index } = row.dataset;
    const from = topOf(row);
    const result = { index: Number(index), drift: 0, frames: 0 };
    const stopped = new AbortController();
    const watch = async () => {
      while (!stopped.signal.aborted) {
        await probe.afterFrame();
        const same = rowOf(index);
        const top = same === null ? null : await paintedTop(same);
        // A row that is no longer drawn has moved out of the view, so the whole height of the view counts.
        const moved = same?.isConnected === true ? Math.abs(top - from) : document.querySelector('.feed').clientHeight;
        result.drift = Math.max(result.drift, moved);
        result.frames += 1;
      }
    };
    void watch();
    probe.stopAnchor = () => {
      stopped.abort();
      return result;
    };
    return true;
  };

  /** Resolves after the page has drawn this many frames. */
  probe.frames = async (count) => {
    for (let frame = 0; frame < count; frame += 1) await probe.afterFrame();
  };

  /** The seqs of the messages that are drawn: those above the anchor, and those from the anchor on. */
  probe.drawnAround = () => {
    const anchor = firstInView();
    const articles = [...document.querySelectorAll('.feed article[aria-posinset]')];
    const at = articles.indexOf(anchor?.querySelector('article'));
    const seqs = articles.map((each) => Number(each.getAttribute('aria-posinset')));
    return { above: seqs.slice(0, Math.max(0, at)), below: seqs.slice(Math.max(0, at)) };
  };

  /** True if the row of a message shows this text, or if the row is not drawn. */
  probe.showsAt = (seq, text) =>
    document.querySelector(`.feed [aria-posinset="${seq}"]`)?.textContent.includes(text) ?? true;
}
