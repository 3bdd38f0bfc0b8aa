import { randomBytes } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';

/**
 * The maximum number of pending requests. A further one is not sent, and counts as not acknowledged after its time-out.
 */
const MAX_PENDING_ACKS = 1_000;
/** A request without an acknowledgement is sent again at this interval: the other node may have had no session. */
const RESEND_INTERVAL_MS = 500;

interface PendingAck {
  readonly node: string;
  readonly finish: (isAcknowledged: boolean) => void;
}

/** Requests to single nodes, each under a nonce of its own, until they are acknowledged or time out. */
export class PendingAcks {
  readonly #pending = new Map<string, PendingAck>();

  /**
   * Sends a request with `send`, which gets the nonce each time; true once `node` has acknowledged it, false after
   * `timeoutMs`.
   */
  request(node: string, timeoutMs: number, send: (nonce: string) => void): Promise<boolean> {
    if (this.#pending.size >= MAX_PENDING_ACKS) return wait(timeoutMs, false, { ref: false });
    const nonce = randomBytes(8).toString('hex');
    return new Promise((resolve) => {
      const finish = (isAcknowledged: boolean): void => {
        clearTimeout(timer);
        clearInterval(resendTimer);
        this.#pending.delete(nonce);
        resolve(isAcknowledged);
      };
      const timer = setTimeout(() => finish(false), timeoutMs);
      const resendTimer = setInterval(send, RESEND_INTERVAL_MS, nonce);
      this.#pending.set(nonce, { node, finish });
      send(nonce);
    });
  }

  /** Handles an acknowledgement; ignores one that no request awaits, or of another node than the request's. */
  onAck(node: string, nonce: string): void {
    const pending = this.#pending.get(nonce);
    if (pending?.node === node) pending.finish(true);
  }

  /** Ends all pending requests as not acknowledged. */
  stop(): void {
    for (const { finish } of this.#pending.values()) finish(false);
  }
}
