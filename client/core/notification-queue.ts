import type { Notification } from './rpc-client.ts';

/** What an inbox works with. */
interface NotificationQueueOptions {
  /** Called for one after the other; the next waits until it has resolved. */
  readonly handle: (notification: Notification) => Promise<void> | void;
  /** There is more than the bound; called again only after `onLowWater`. */
  readonly onHighWater: () => void;
  readonly onLowWater: () => void;
  /** There is far more than the bound: what comes is not taken in any more. */
  readonly onOverflow: () => void;
  readonly highWaterBytes: number;
  readonly overflowBytes: number;
}

/** Beside its text, what one waiting notification takes in memory at least. */
const ENTRY_OVERHEAD_BYTES = 200;
/** What was taken is let go of in stretches of this many. */
const COMPACT_AFTER_DEQUEUED = 1_000;

/** Keeps what the server says in order while it is worked on. */
export class NotificationQueue {
  /** Of what waits. */
  #estimatedQueuedBytes = 0;
  #queued: Notification[] = [];
  #nextIndex = 0;
  readonly #options: NotificationQueueOptions;
  #isProcessing = false;
  #processingDone: Promise<void> = Promise.resolve();
  #isProcessingEnabled = false;
  #isAwaitingLowWater = false;
  #onFailed: ((error: unknown) => void) | null = null;

  constructor(options: NotificationQueueOptions) {
    this.#options = options;
  }

  enqueueOrOverflow(notification: Notification): void {
    if (this.#estimatedQueuedBytes > this.#options.overflowBytes) return this.#options.onOverflow();
    this.#queued.push(notification);
    this.#estimatedQueuedBytes += notification.receivedTextLength + ENTRY_OVERHEAD_BYTES;
    if (this.#isProcessingEnabled) this.#processIfIdle();
    if (!this.#isAwaitingLowWater && this.#estimatedQueuedBytes > this.#options.highWaterBytes) {
      this.#isAwaitingLowWater = true;
      this.#options.onHighWater();
    }
  }

  /** From now on what waits is worked on. `onFailed` hears of the first error of `handle`; nothing is worked on after it. */
  startProcessing(onFailed: (error: unknown) => void): void {
    this.#onFailed = onFailed;
    this.#isProcessingEnabled = true;
    this.#processIfIdle();
  }

  /** Throws away what waits, and resolves when what is worked on is done. */
  async discardAndWait(): Promise<void> {
    this.#queued = [];
    this.#nextIndex = 0;
    this.#estimatedQueuedBytes = 0;
    this.#isProcessingEnabled = false;
    await this.#processingDone;
  }

  #processIfIdle(): void {
    if (this.#isProcessing || this.#nextIndex === this.#queued.length) return;
    this.#isProcessing = true;
    this.#processingDone = this.#processQueue();
  }

  async #processQueue(): Promise<void> {
    try {
      while (this.#isProcessingEnabled && this.#nextIndex < this.#queued.length) {
        const done = this.#options.handle(this.#dequeue());
        // A handler that is done at once costs no turn of the event loop.
        if (done !== undefined) await done;
        if (this.#isAwaitingLowWater && this.#estimatedQueuedBytes <= this.#options.highWaterBytes / 2) {
          this.#isAwaitingLowWater = false;
          this.#options.onLowWater();
        }
      }
    } catch (error) {
      this.#isProcessingEnabled = false;
      this.#onFailed?.(error);
    } finally {
      // Set in the tick in which the loop ends, so that the next `enqueue` starts the loop again.
      this.#isProcessing = false;
    }
  }

  #dequeue(): Notification {
    const notification = this.#queued[this.#nextIndex]!;
    this.#nextIndex += 1;
    this.#estimatedQueuedBytes -= notification.receivedTextLength + ENTRY_OVERHEAD_BYTES;
    if (this.#nextIndex === this.#queued.length || this.#nextIndex === COMPACT_AFTER_DEQUEUED) {
      this.#queued = this.#queued.slice(this.#nextIndex);
      this.#nextIndex = 0;
    }
    return notification;
  }
}
