import { Histogram } from '../histogram.ts';

const MEASURE_INTERVAL_MS = 50;
const DELAY_BUCKET_BOUNDS_S = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];

/**
 * Measures the delay of a timer in the event loop. Every request and delivery waits for this time in addition to its
 * own work. A histogram counts the delays: percentiles would be reset by each scrape, and scrapers would see different
 * ones.
 */
export class EventLoopDelay {
  readonly delayS = new Histogram(DELAY_BUCKET_BOUNDS_S);
  #timer: NodeJS.Timeout | null = null;

  start(): void {
    if (this.#timer !== null) return;
    let due = performance.now() + MEASURE_INTERVAL_MS;
    this.#timer = setInterval(() => {
      const now = performance.now();
      this.delayS.observe(Math.max(0, now - due) / 1_000);
      // Node, too, counts the next interval from the time at which the timer ran.
      due = now + MEASURE_INTERVAL_MS;
    }, MEASURE_INTERVAL_MS);
    this.#timer.unref();
  }

  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }
}
