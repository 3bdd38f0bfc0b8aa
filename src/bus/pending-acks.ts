import { randomBytes } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';

/** Questions that may wait for their answer at once; one more is not asked, and not heard when its time is over. */
const MAX_PENDING = 1_000;
/** A question is said again this often, for a node that has no session at the moment. */
const RESEND_MS = 500;

interface PendingAck {
  readonly node: string;
  readonly finish: (isAcknowledged: boolean) => void;
}

/** Questions to single nodes, each under a number of its own, until they are answered or their time is over. */
export class PendingAcks {
  readonly #pending = new Map<string, PendingAck>();

  /** Asks by `send`, which gets the number each time; true once `node` has answered it, false when it has not in time. */
  request(node: string, timeoutMs: number, send: (nonce: string) => void): Promise<boolean> {
    if (this.#pending.size >= MAX_PENDING) return wait(timeoutMs, false, { ref: false });
    const nonce = randomBytes(8).toString('hex');
    return new Promise((resolve) => {
      const finish = (isAcknowledged: boolean): void => {
        clearTimeout(timer);
        clearInterval(resendTimer);
        this.#pending.delete(nonce);
        resolve(isAcknowledged);
      };
      const timer = setTimeout(() => finish(false), timeoutMs);
      const resendTimer = setInterval(send, RESEND_MS, nonce);
      this.#pending.set(nonce, { node, finish });
      send(nonce);
    });
  }

  /** An answer came; one that nobody waits for any more, or of another node than was asked, is nothing. */
  onAck(node: string, nonce: string): void {
    const pending = this.#pending.get(nonce);
    if (pending?.node === node) pending.finish(true);
  }

  /** Nobody will answer any more. */
  stop(): void {
    for (const { finish } of this.#pending.values()) finish(false);
  }
}
