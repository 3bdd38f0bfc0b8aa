import type { Notification } from './rpc-client.ts';

interface NotificationQueueOptions {
  /** Called for one notification after the other: the next call waits until the result of this call has resolved. */
  readonly handle: (notification: Notification) => Promise<void> | void;
  /** Called when the queue exceeds `highWaterBytes`; called again only after `onLowWater`. */
  readonly onHighWater: () => void;
  readonly onLowWater: () => void;
  /** Called instead of queueing a notification when the queue exceeds `overflowBytes`. */
  readonly onOverflow: () => void;
  readonly highWaterBytes: number;
  readonly overflowBytes: number;
}

/** The memory that one waiting notification takes at least, apart from its text. */
const ENTRY_OVERHEAD_BYTES = 200;
/** The queue frees the slots of handled notifications in batches of this size. */
const COMPACT_AFTER_DEQUEUED = 1_000;

/** Keeps the notifications of a server in order until they are handled. */
export class NotificationQueue {
  /** An estimate of the memory that the waiting notifications take. */
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

  /** Starts to handle the waiting notifications. `onFailed` gets the first error of `handle`; the queue stops there. */
  startProcessing(onFailed: (error: unknown) => void): void {
    this.#onFailed = onFailed;
    this.#isProcessingEnabled = true;
    this.#processIfIdle();
  }

  /** Drops the waiting notifications, and resolves when the current one is handled. */
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
        // A handler that returns nothing costs no turn of the event loop.
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
      // Set in the tick in which the loop ends, so that the next `enqueueOrOverflow` starts the loop again.
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
