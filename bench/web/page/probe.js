/**
 * Measures inside a page of Klatch or of another program. Browsers run it before the scripts of the page.
 *
 * A condition is `{ text: [selector, part] }`: one of the last elements that match shows this text, or `{ present:
 * selector }`. All times are those of `performance.now()`, in ms.
 */
{
  /** The number of last elements to search. New messages are at the end, even of a long list. */
  const LAST_ELEMENTS = 8;
  /** A long task holds the main thread for more than this. */
  const TASK_BUDGET_MS = 50;

  /** Resolves after the next frame, when its layout and paint are done. */
  const afterFrame = () =>
    new Promise((resolve) => {
      requestAnimationFrame(() => {
        const { port1, port2 } = new MessageChannel();
        const onMessage = () => {
          port1.close();
          resolve(performance.now());
        };
        port1.addEventListener('message', onMessage, { once: true });
        port1.start();
        port2.postMessage(null);
      });
    });

  const holds = ({ present, text }) => {
    if (present !== undefined) return document.querySelector(present) !== null;
    const [selector, part] = text;
    return [...document.querySelectorAll(selector)]
      .slice(-LAST_ELEMENTS)
      .some((each) => each.textContent.includes(part));
  };

  /** Resolves to the time at which a frame that meets all conditions was painted. */
  const painted = (conditions) =>
    new Promise((resolve) => {
      const check = () => {
        if (!conditions.every(holds)) return false;
        observer.disconnect();
        void afterFrame().then(resolve);
        return true;
      };
      const observer = new MutationObserver(check);
      if (!check())
        observer.observe(document, { subtree: true, childList: true, characterData: true, attributes: true });
    });

  const entriesOf = (type) => {
    const entries = [];
    new PerformanceObserver((list) => entries.push(...list.getEntries())).observe({ type, buffered: true });
    return entries;
  };

  /**
   * Measures the start of the page, from the start of the navigation. Layout shifts that follow an input do not count:
   * the input caused them.
   */
  const measureStart = (conditions) => {
    const [contentful, shifts, tasks] = ['largest-contentful-paint', 'layout-shift', 'longtask'].map(entriesOf);
    return painted(conditions).then(async (readyMs) => {
      for (let frame = 0; frame < 5; frame += 1) await afterFrame();
      const blocking = tasks.map(({ duration }) => Math.max(0, duration - TASK_BUDGET_MS));
      return {
        readyMs,
        largestPaintMs: contentful.at(-1)?.startTime ?? 0,
        layoutShift: shifts.filter((each) => !each.hadRecentInput).reduce((sum, each) => sum + each.value, 0),
        blockingMs: blocking.reduce((sum, each) => sum + each, 0),
      };
    });
  };

  const probe = {
    afterFrame,
    painted,
    start: null,
    taken: null,
    /** Starts the measurement of the start; `probe.start` resolves when the page can be used. */
    expectStart(conditions) {
      probe.start = measureStart(conditions);
    },
    /**
     * Waits for the next event of this type. `probe.taken` resolves to the times from that event to the frame that
     * meets each condition.
     */
    expectEvent(type, conditions) {
      probe.taken = new Promise((resolve) => {
        const onEvent = ({ timeStamp }) => {
          void Promise.all(conditions.map((each) => painted([each]))).then((times) =>
            resolve(times.map((time) => time - timeStamp)),
          );
        };
        addEventListener(type, onEvent, { capture: true, once: true });
      });
    },
  };
  globalThis.probe = probe;
}
