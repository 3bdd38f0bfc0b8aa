/** A message counts as read when it was in view for so long. */
const IN_VIEW_MS = 1_000;

/** What a tracker works with. */
interface ReadTrackerOptions {
  /** Whether somebody looks: the page is visible and has the focus. */
  readonly isLookedAt: () => boolean;
  /** Up to here everything was in view for a second. */
  readonly onRead: (seq: number) => void;
  readonly inViewMs?: number;
}

/** Tells which messages were in view for a second while somebody looked at the page; at most one call a second. */
export class ReadTracker {
  readonly #options: ReadTrackerOptions;
  /** The last message that is whole in view. */
  #seqInView = 0;
  /** The least one since the timer runs: what somebody scrolls away from and back to was not in view all the time. */
  #leastSeqInView = 0;
  #readSeq = 0;
  #timer: ReturnType<typeof setTimeout> | null = null;

  constructor(options: ReadTrackerOptions) {
    this.#options = options;
  }

  /** `seq`: the last message that is whole in view now; the same one again where the page came into focus. */
  update(seq: number): void {
    this.#seqInView = seq;
    this.#leastSeqInView = Math.min(this.#leastSeqInView, seq);
    this.check();
  }

  /** Looks again whether somebody looks. */
  check(): void {
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
      this.check();
    }, this.#options.inViewMs ?? IN_VIEW_MS);
  }

  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }
}
