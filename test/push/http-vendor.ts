import { performance } from 'node:perf_hooks';
import type { DeviceKind } from '../../src/model/device.ts';
import type { PushNotification, PushOutcome, PushTarget, PushVendor } from '../../src/push/vendors/vendor.ts';

/** A push as the service of a vendor gets it: the notification as JSON, and the token of the device as the path. */
export interface GotPush extends Omit<PushNotification, 'expiresAt'> {
  readonly expiresAt: string;
  readonly app: string | null;
}

/** A vendor whose service is any HTTP server: the simplest possible driver. */
export class HttpVendor implements PushVendor {
  readonly kind: DeviceKind;
  problem: string | null = null;
  stopped = false;
  readonly #url: () => string;
  readonly #timeoutMs: number;
  readonly #stopping = new AbortController();

  constructor(kind: DeviceKind, url: () => string, timeoutMs: number) {
    this.kind = kind;
    this.#url = url;
    this.#timeoutMs = timeoutMs;
  }

  async send({ token, app }: PushTarget, note: PushNotification): Promise<PushOutcome> {
    const startedMs = performance.now();
    try {
      const response = await fetch(`${this.#url()}/${encodeURIComponent(token)}`, {
        method: 'POST',
        body: JSON.stringify({ ...note, app }),
        signal: AbortSignal.any([AbortSignal.timeout(this.#timeoutMs), this.#stopping.signal]),
      });
      await response.arrayBuffer();
      return outcomeOf(response);
    } catch {
      const category = performance.now() - startedMs >= this.#timeoutMs ? 'timeout' : 'connection';
      return { outcome: 'failed', category, code: null, retryAfterMs: null, vendorWide: true };
    }
  }

  stop(): Promise<void> {
    this.stopped = true;
    this.#stopping.abort();
    return Promise.resolve();
  }
}

/**
 * The outcome of a push by status. 410: unregistered. 400: refused. 429: later for this device. Any other failure: the
 * service has a problem.
 */
function outcomeOf({ status: code, headers, ok }: Response): PushOutcome {
  if (ok) return { outcome: 'delivered' };
  if (code === 410) return { outcome: 'unregistered', category: 'unregistered', code };
  if (code === 400) return { outcome: 'refused', category: 'payload', code };
  const asked = headers.get('retry-after');
  const retryAfterMs = asked === null ? null : Number(asked) * 1_000;
  return { outcome: 'failed', category: 'status', code, retryAfterMs, vendorWide: code !== 429 };
}
