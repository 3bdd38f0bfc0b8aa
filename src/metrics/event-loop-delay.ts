import { Histogram } from '../histogram.ts';

const INTERVAL_MS = 50;
const BOUNDS_S = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];

/**
 * How late the event loop comes to a timer: what every request and delivery waits on top of its own work. Counted in
 * buckets, and not as percentiles that start anew with each scrape, so that any number of scrapers see the same.
 */
export class EventLoopDelay {
  readonly delayS = new Histogram(BOUNDS_S);
  #timer: NodeJS.Timeout | null = null;

  start(): void {
    if (this.#timer !== null) return;
    let due = performance.now() + INTERVAL_MS;
    this.#timer = setInterval(() => {
      const now = performance.now();
      this.delayS.observe(Math.max(0, now - due) / 1_000);
      // Node counts an interval from when it ran, too.
      due = now + INTERVAL_MS;
    }, INTERVAL_MS);
    this.#timer.unref();
  }

  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }
}
