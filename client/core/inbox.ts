import type { Notification } from './rpc-client.ts';

/** What an inbox works with. */
interface InboxOptions {
  /** Called for one after the other; the next waits until it has resolved. */
  readonly handle: (notification: Notification) => Promise<void> | void;
  /** There is more than the bound; called again only after `relieved`. */
  readonly crowded: () => void;
  readonly relieved: () => void;
  /** There is far more than the bound: what comes is not taken in any more. */
  readonly overfull: () => void;
  readonly maxBytes: number;
  readonly overfullBytes: number;
}

/** Beside its text, what one waiting notification takes in memory at least. */
const ENTRY_BYTES = 200;
/** What was taken is let go of in stretches of this many. */
const MAX_TAKEN = 1_000;

/** Keeps what the server says in order while it is worked on. */
export class Inbox {
  /** Of what waits. */
  #bytes = 0;
  #waiting: Notification[] = [];
  #next = 0;
  readonly #options: InboxOptions;
  #isWorking = false;
  #done: Promise<void> = Promise.resolve();
  #isOpen = false;
  #isCrowded = false;
  #failed: ((error: unknown) => void) | null = null;

  constructor(options: InboxOptions) {
    this.#options = options;
  }

  put(notification: Notification): void {
    if (this.#bytes > this.#options.overfullBytes) return this.#options.overfull();
    this.#waiting.push(notification);
    this.#bytes += notification.bytes + ENTRY_BYTES;
    if (this.#isOpen) this.#work();
    if (!this.#isCrowded && this.#bytes > this.#options.maxBytes) {
      this.#isCrowded = true;
      this.#options.crowded();
    }
  }

  /** From now on what waits is worked on. `failed` hears of the first error of `handle`; nothing is worked on after it. */
  open(failed: (error: unknown) => void): void {
    this.#failed = failed;
    this.#isOpen = true;
    this.#work();
  }

  /** Throws away what waits, and resolves when what is worked on is done. */
  async close(): Promise<void> {
    this.#waiting = [];
    this.#next = 0;
    this.#bytes = 0;
    this.#isOpen = false;
    await this.#done;
  }

  #work(): void {
    if (this.#isWorking || this.#next === this.#waiting.length) return;
    this.#isWorking = true;
    this.#done = this.#workOff();
  }

  async #workOff(): Promise<void> {
    try {
      while (this.#isOpen && this.#next < this.#waiting.length) {
        const done = this.#options.handle(this.#take());
        // A handler that is done at once costs no turn of the event loop.
        if (done !== undefined) await done;
        if (this.#isCrowded && this.#bytes <= this.#options.maxBytes / 2) {
          this.#isCrowded = false;
          this.#options.relieved();
        }
      }
    } catch (error) {
      this.#isOpen = false;
      this.#failed?.(error);
    } finally {
      // In the same tick in which the loop ended: what is put a moment later has to start it anew.
      this.#isWorking = false;
    }
  }

  #take(): Notification {
    const notification = this.#waiting[this.#next]!;
    this.#next += 1;
    this.#bytes -= notification.bytes + ENTRY_BYTES;
    if (this.#next === this.#waiting.length || this.#next === MAX_TAKEN) {
      this.#waiting = this.#waiting.slice(this.#next);
      this.#next = 0;
    }
    return notification;
  }
}
