/** Adds recorders of many frames to `probe`. A recorder is stopped by a function that returns its results. */
{
  const { probe } = globalThis;
  /** The number of frames between two counts of all nodes; a count takes about a millisecond. */
  const FRAMES_PER_COUNT = 20;
  /** A list has reached its end when it stays there for this many frames, in which its rows get their heights. */
  const FRAMES_AT_END = 3;
  /** The greatest length of the text that is quoted from a page without a conversation. */
  const MAX_TEXT = 200;
  /** The limit for scrolling once through a list, in frames. */
  const MAX_FRAMES_OF_WAY = 50_000;
  /** The limit for content to arrive, in frames: half a minute. */
  const MAX_FRAMES_WAITED = 1_800;

  const countNodes = () => {
    const walker = document.createTreeWalker(document, NodeFilter.SHOW_ALL);
    let count = 1;
    while (walker.nextNode() !== null) count += 1;
    return count;
  };

  probe.countNodes = countNodes;

  /** The number in the last element of a list that is in view; 0 if there is none. */
  const lastNumber = ({ list, item, attribute }) => {
    const view = document.querySelector(list);
    if (view === null) return 0;
    const { bottom } = view.getBoundingClientRect();
    const items = view.querySelectorAll(item);
    for (let index = items.length - 1; index >= 0; index -= 1) {
      if (items[index].getBoundingClientRect().top >= bottom) continue;
      const text =
        attribute === null
          ? (/message (\d+)/.exec(items[index].textContent)?.[1] ?? 0)
          : items[index].getAttribute(attribute);
      return Number(text);
    }
    return 0;
  };

  /** Records after each frame the last message that a list shows: `[Unix time in ms, number]`. */
  probe.recordLast = (source) => {
    const shown = [];
    const stopped = new AbortController();
    const record = async () => {
      while (!stopped.signal.aborted) {
        const at = performance.timeOrigin + (await probe.afterFrame());
        const number = lastNumber(source);
        if (number > (shown.at(-1)?.[1] ?? 0)) shown.push([at, number]);
      }
    };
    void record();
    probe.stopLast = () => {
      stopped.abort();
      return shown;
    };
  };

  /** Records the time from each key to the frame that follows it. */
  probe.recordKeys = () => {
    const times = [];
    const onKey = ({ timeStamp }) => probe.afterFrame().then((at) => times.push(at - timeStamp));
    addEventListener('keydown', onKey, { capture: true });
    probe.stopKeys = () => {
      removeEventListener('keydown', onKey, { capture: true });
      return times;
    };
  };

  const distanceToEnd = ({ scrollTop, scrollHeight, clientHeight }, step) =>
    step < 0 ? scrollTop : scrollHeight - clientHeight - scrollTop;

  /**
   * Scrolls a list to one of its ends, `step` pixels a frame. Returns the number of frames that it took, and the most
   * nodes that the page had.
   */
  probe.scrollThrough = async (list, step) => {
    const view = document.querySelector(list);
    const result = { frames: 0, nodes: countNodes() };
    for (let still = 0; still < FRAMES_AT_END; result.frames += 1) {
      if (result.frames === MAX_FRAMES_OF_WAY) throw new Error('the end of the list was not reached');
      view.scrollTop += step;
      await probe.afterFrame();
      still = distanceToEnd(view, step) < 1 ? still + 1 : 0;
      if (result.frames % FRAMES_PER_COUNT === 0) result.nodes = Math.max(result.nodes, countNodes());
    }
    return result;
  };

  /** Drags the scroll bar to a share of its range within this many frames, as quickly as a hand does. */
  probe.dragTo = async (list, share, frames) => {
    const view = document.querySelector(list);
    const from = view.scrollTop;
    const to = share * (view.scrollHeight - view.clientHeight);
    for (let frame = 1; frame <= frames; frame += 1) {
      view.scrollTop = from + ((to - from) * frame) / frames;
      await probe.afterFrame();
    }
    await probe.settled(list);
    return countNodes();
  };

  const isLoading = () => document.querySelector('.feed .unloaded') !== null;

  /** Resolves when all rows that are drawn have their content. */
  probe.settled = async () => {
    for (let frame = 0; isLoading(); frame += 1) {
      if (frame === MAX_FRAMES_WAITED) throw new Error('rows got no content in half a minute');
      await probe.afterFrame();
    }
  };

  /** Resolves when the row of a message is drawn with its content. */
  probe.drawn = async (seq) => {
    for (let frame = 0; document.querySelector(`.feed [aria-posinset="${seq}"]`) === null; frame += 1) {
      if (frame === MAX_FRAMES_WAITED) throw new Error(`message ${seq} was not shown in half a minute`);
      await probe.afterFrame();
    }
  };

  /** Describes what the list shows, for a person who looks for the cause of a failure. */
  const describeView = () => {
    if (document.querySelector('.feed') === null) return document.body.innerText.slice(0, MAX_TEXT);
    const { scrollTop, scrollHeight } = document.querySelector('.feed');
    const rows = document.querySelectorAll('.feed .row');
    const problem = document.querySelector('.timeline .error')?.textContent ?? 'none';
    return `rows ${rows[0]?.dataset.index} to ${rows[rows.length - 1]?.dataset.index}, loading: ${isLoading()}, at ${scrollTop} of ${scrollHeight} px, problem: ${problem}`;
  };

  /**
   * Shows a message by its URL. Resolves to the time until its row was drawn with its content, or to a description of
   * the failure.
   */
  probe.jumpTo = async (path, seq) => {
    const startedAt = performance.now();
    history.pushState(null, '', path);
    dispatchEvent(new PopStateEvent('popstate'));
    try {
      await probe.drawn(seq);
      return { ms: performance.now() - startedAt };
    } catch {
      return { failure: describeView() };
    }
  };

  /** The number of seqs that do not follow the seq before them. */
  const countDisordered = (seqs) => seqs.filter((seq, at) => at > 0 && seq !== seqs[at - 1] + 1).length;

  /**
   * Reads a conversation from its first row to its last. Returns `[seq, text]` of each message, and the number of
   * messages that were out of order.
   */
  probe.readAll = async () => {
    const feed = document.querySelector('.feed');
    const found = [];
    let disordered = 0;
    feed.scrollTop = 0;
    await probe.drawn(1);
    for (let [still, frame] = [0, 0]; still < FRAMES_AT_END; frame += 1) {
      if (frame === MAX_FRAMES_OF_WAY) throw new Error(`the end of the list was not reached: ${describeView()}`);
      await probe.afterFrame();
      await probe.settled();
      const articles = [...feed.querySelectorAll('article[aria-posinset]')];
      const seqs = articles.map((each) => Number(each.getAttribute('aria-posinset')));
      disordered += countDisordered(seqs);
      articles.forEach((article, at) => {
        // Rows outside the view are drawn as well, so a row is seen several times: only the first time counts.
        if (seqs[at] > (found.at(-1)?.[0] ?? 0))
          found.push([seqs[at], article.querySelector('.text')?.textContent ?? '']);
      });
      // The distance to the end may stay above 1 px where the field for texts has a height in fractions of pixels.
      const before = feed.scrollTop;
      feed.scrollTop += feed.clientHeight;
      still = Math.abs(feed.scrollTop - before) < 1 ? still + 1 : 0;
    }
    return { found, disordered };
  };
}
