import { signal } from '@preact/signals';
import { backoffMs, DEFAULT_BACKOFF } from '../../client/core/backoff.ts';
import { isTransient } from '../../client/core/chat-error.ts';
import { waitOrUntilAborted } from '../../client/core/wait.ts';

/** Repeats a request until the server answers it, for data that the screen cannot be shown without. */
export class RetryingRead {
  /**
   * The error of the last attempt, until one succeeds. `retryAt`: the time of the next attempt, as `Date.now` counts.
   */
  readonly failure = signal<{ readonly error: Error; readonly retryAt: number } | null>(null);
  #waitAbort = new AbortController();

  /**
   * Repeats `read` until it succeeds; never rejects. The wait before the next attempt grows to 30 s; after an error
   * that is not transient it is 30 s at once.
   */
  async run<Answer>(read: () => Promise<Answer>): Promise<Answer> {
    for (let failures = 0; ; failures += 1) {
      try {
        const answer = await read();
        this.failure.value = null;
        return answer;
      } catch (error) {
        const waitMs = isTransient(error) ? backoffMs(failures, DEFAULT_BACKOFF) : DEFAULT_BACKOFF.maxDelayMs;
        this.#waitAbort = new AbortController();
        this.failure.value = { error: error as Error, retryAt: Date.now() + waitMs };
        await waitOrUntilAborted(waitMs, this.#waitAbort.signal);
      }
    }
  }

  /** Makes the next attempt at once. */
  tryNow(): void {
    this.#waitAbort.abort();
  }
}
