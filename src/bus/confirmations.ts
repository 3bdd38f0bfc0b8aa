import { randomBytes } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';

/** Questions that may wait for their answer at once; one more is not asked, and not heard when its time is over. */
const MAX_WAITING = 1_000;
/** A question is said again this often, for a node that has no session at the moment. */
const REPEAT_MS = 500;

interface Waiting {
  readonly node: string;
  readonly conclude: (heard: boolean) => void;
}

/** Questions to single nodes, each under a number of its own, until they are answered or their time is over. */
export class Confirmations {
  readonly #waiting = new Map<string, Waiting>();

  /** Asks by `send`, which gets the number each time; true once `node` has answered it, false when it has not in time. */
  ask(node: string, timeoutMs: number, send: (nonce: string) => void): Promise<boolean> {
    if (this.#waiting.size >= MAX_WAITING) return wait(timeoutMs, false, { ref: false });
    const nonce = randomBytes(8).toString('hex');
    return new Promise((resolve) => {
      const conclude = (heard: boolean): void => {
        clearTimeout(timer);
        clearInterval(repeats);
        this.#waiting.delete(nonce);
        resolve(heard);
      };
      const timer = setTimeout(() => conclude(false), timeoutMs);
      const repeats = setInterval(send, REPEAT_MS, nonce);
      this.#waiting.set(nonce, { node, conclude });
      send(nonce);
    });
  }

  /** An answer came; one that nobody waits for any more, or of another node than was asked, is nothing. */
  answered(node: string, nonce: string): void {
    const waiting = this.#waiting.get(nonce);
    if (waiting?.node === node) waiting.conclude(true);
  }

  /** Nobody will answer any more. */
  stop(): void {
    for (const { conclude } of this.#waiting.values()) conclude(false);
  }
}
