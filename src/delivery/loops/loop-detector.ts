/** The documented criterion: for 5 minutes in a row, more than 60 posts in each. */
const MINUTES = 5;
const POSTS_PER_MINUTE = 60;
const MINUTE_MS = 60_000;
const SECOND_MS = 1_000;
/** Seconds that are remembered. A lane delivers a post of a loop sooner than that after the post. */
const SECONDS = 64;

/**
 * Detects whether the receiver of one hook seems to answer posts of the group's webhook with further posts. It counts
 * the webhook's posts that come within 2 s, in whole seconds, after a delivery of such a post to the hook. A busy group
 * meets the same criterion.
 */
export class LoopDetector {
  /** The seconds, in Unix time, in which such posts were delivered. */
  readonly #deliverySeconds = new Uint32Array(SECONDS);
  #minute = 0;
  #postsInMinute = 0;
  /** Successive minutes with too many posts; the last of them is the one before `#minute`. */
  #minutesInRow = 0;

  /** Records the delivery, at `nowMs`, of a webhook's post from `postedMs`; both in Unix time. */
  observe(postedMs: number, nowMs: number): void {
    const posted = Math.floor(postedMs / SECOND_MS);
    const follows = this.#hasDeliveryIn(posted) || this.#hasDeliveryIn(posted - 1);
    const second = Math.floor(nowMs / SECOND_MS);
    this.#deliverySeconds[second % SECONDS] = second;
    if (!follows) return;
    this.#beginMinute(Math.floor(nowMs / MINUTE_MS));
    this.#postsInMinute += 1;
  }

  /** Whether the criterion is met at `nowMs`. */
  isLoop(nowMs: number): boolean {
    this.#beginMinute(Math.floor(nowMs / MINUTE_MS));
    return this.#minutesInRow >= MINUTES;
  }

  #hasDeliveryIn(second: number): boolean {
    return this.#deliverySeconds[second % SECONDS] === second;
  }

  #beginMinute(minute: number): void {
    if (minute === this.#minute) return;
    const isNext = minute === this.#minute + 1;
    this.#minutesInRow = isNext && this.#postsInMinute > POSTS_PER_MINUTE ? this.#minutesInRow + 1 : 0;
    this.#minute = minute;
    this.#postsInMinute = 0;
  }
}
