/**
 * The criterion of a loop (docs/reverse-webhooks.md): in each of 5 successive minutes, more than 60 posts that follow a
 * delivery at once.
 */
const MIN_LOOP_MINUTES = 5;
const LOOP_POSTS_PER_MINUTE = 60;
const MINUTE_MS = 60_000;
const SECOND_MS = 1_000;
/**
 * The detector remembers in which of the last 64 seconds a delivery was made. In a loop a lane delivers each post
 * sooner than that.
 */
const REMEMBERED_SECONDS = 64;

/**
 * Detects whether the receiver of one hook seems to answer posts of the group's webhook with further posts. It counts a
 * post of the webhook if an earlier one was delivered to the hook in the same second or the second before. The posts of
 * a busy group can also meet the criterion.
 */
export class LoopDetector {
  /** The seconds, in Unix time, in which posts of the group's webhook were delivered to the hook. */
  readonly #deliverySeconds = new Uint32Array(REMEMBERED_SECONDS);
  #currentMinute = 0;
  #postsInMinute = 0;
  /** Successive minutes with too many posts; the last of these minutes is the one before `#currentMinute`. */
  #minutesInRow = 0;

  /**
   * Records that a post of the webhook, which was posted at `postedMs`, is delivered at `nowMs`; both are Unix times.
   */
  observeDelivery(postedMs: number, nowMs: number): void {
    const postedSecond = Math.floor(postedMs / SECOND_MS);
    const followsDelivery = this.#hasDeliveryIn(postedSecond) || this.#hasDeliveryIn(postedSecond - 1);
    const second = Math.floor(nowMs / SECOND_MS);
    this.#deliverySeconds[second % REMEMBERED_SECONDS] = second;
    if (!followsDelivery) return;
    this.#beginMinute(Math.floor(nowMs / MINUTE_MS));
    this.#postsInMinute += 1;
  }

  /** Whether the criterion of a loop is met at `nowMs`, a Unix time. */
  isLoop(nowMs: number): boolean {
    this.#beginMinute(Math.floor(nowMs / MINUTE_MS));
    return this.#minutesInRow >= MIN_LOOP_MINUTES;
  }

  #hasDeliveryIn(second: number): boolean {
    return this.#deliverySeconds[second % REMEMBERED_SECONDS] === second;
  }

  #beginMinute(minute: number): void {
    if (minute === this.#currentMinute) return;
    const isNext = minute === this.#currentMinute + 1;
    this.#minutesInRow = isNext && this.#postsInMinute > LOOP_POSTS_PER_MINUTE ? this.#minutesInRow + 1 : 0;
    this.#currentMinute = minute;
    this.#postsInMinute = 0;
  }
}
