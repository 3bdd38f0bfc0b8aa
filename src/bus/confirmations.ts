import { randomBytes } from 'node:crypto';

/** Questions that may wait for their answer at once; one more is answered with "not heard". */
const MAX_WAITING = 1_000;

interface Waiting {
  readonly node: string;
  readonly conclude: (heard: boolean) => void;
}

/** Questions to single nodes, each under a number of its own, until they are answered or their time is over. */
export class Confirmations {
  readonly #waiting = new Map<string, Waiting>();

  /** Asks by `send`, which gets the number; true once `node` has answered it, false when it has not in time. */
  ask(node: string, timeoutMs: number, send: (nonce: string) => void): Promise<boolean> {
    if (this.#waiting.size >= MAX_WAITING) return Promise.resolve(false);
    const nonce = randomBytes(8).toString('hex');
    return new Promise((resolve) => {
      const conclude = (heard: boolean): void => {
        clearTimeout(timer);
        this.#waiting.delete(nonce);
        resolve(heard);
      };
      const timer = setTimeout(() => conclude(false), timeoutMs);
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
