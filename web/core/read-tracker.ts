/** A message counts as read after it was in view for this time. */
const IN_VIEW_MS = 1_000;

interface ReadTrackerOptions {
  /** Whether the page is visible and has the focus. */
  readonly isLookedAt: () => boolean;
  /** Called with a seq up to which all messages were in view for a second. */
  readonly onRead: (seq: number) => void;
  readonly inViewMs?: number;
}

/** Reports the messages that were in view for a second while the page was visible with focus, at most once a second. */
export class ReadTracker {
  readonly #options: ReadTrackerOptions;
  /** The seq of the last message that is entirely in view. */
  #seqInView = 0;
  /**
   * The smallest `#seqInView` since the timer started: a message that was scrolled out of view and back does not count.
   */
  #leastSeqInView = 0;
  #readSeq = 0;
  #timer: ReturnType<typeof setTimeout> | null = null;

  constructor(options: ReadTrackerOptions) {
    this.#options = options;
  }

  /** `seq`: the last message that is entirely in view now; the same seq again when the page gets the focus. */
  updateSeqInView(seq: number): void {
    this.#seqInView = seq;
    this.#leastSeqInView = Math.min(this.#leastSeqInView, seq);
    this.startOrStopTimer();
  }

  /**
   * Starts the timer after which messages in view count as read, or stops it while the page is hidden or without focus.
   */
  startOrStopTimer(): void {
    if (!this.#options.isLookedAt()) return this.stop();
    if (this.#timer !== null || this.#seqInView <= this.#readSeq) return;
    this.#leastSeqInView = this.#seqInView;
    this.#timer = setTimeout(() => {
      this.#timer = null;
      if (!this.#options.isLookedAt()) return;
      const seq = this.#leastSeqInView;
      if (seq > this.#readSeq) {
        this.#readSeq = seq;
        this.#options.onRead(seq);
      }
      this.startOrStopTimer();
    }, this.#options.inViewMs ?? IN_VIEW_MS);
  }

  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }
}
