import { failureCategoryOf } from '../outbound/failure.ts';
import { parseRetryAfter } from '../outbound/retry-after.ts';
import type { PushOutcome } from './vendors/vendor.ts';

/** What a vendor may ask us to wait, at most. */
const MAX_RETRY_AFTER_MS = 3_600_000;

/** A failure that is to be repeated. */
export type FailedOutcome = Extract<PushOutcome, { outcome: 'failed' }>;

export const delivered: PushOutcome = { outcome: 'delivered' };

/** The device is not known any more. */
export function unregistered(category: string, code: number | null): PushOutcome {
  return { outcome: 'unregistered', category, code };
}

/** No repeat will help. */
export function refused(category: string, code: number | null): PushOutcome {
  return { outcome: 'refused', category, code };
}

/** To be repeated; by default the problem is this device's alone. */
export function failed(
  category: string,
  more: { code?: number | null; retryAfterMs?: number | null; vendorWide?: boolean } = {},
): FailedOutcome {
  const { code = null, retryAfterMs = null, vendorWide = false } = more;
  return { outcome: 'failed', category, code, retryAfterMs, vendorWide };
}

/** What happened on the way to a vendor as a whole: no answer, no connection. */
export function transportFailure(error: unknown): FailedOutcome {
  const { name = '' } = error as { name?: string };
  const isLate = name === 'TimeoutError' || name === 'AbortError';
  return failed(isLate ? 'timeout' : failureCategoryOf(error as Error), { vendorWide: true });
}

/** A `Retry-After` header in milliseconds, bounded; null where there is none that can be read. */
export function parseBoundedRetryAfterMs(value: string | readonly string[] | undefined): number | null {
  return boundRetryAfter(parseRetryAfter(value, Date.now()));
}

/** What a vendor asks to be waited for, as far as that is honoured. */
export function boundRetryAfter(ms: number | null): number | null {
  return ms === null ? null : Math.min(ms, MAX_RETRY_AFTER_MS);
}
