import { failureCategoryOf } from '../outbound/failure.ts';
import { parseRetryAfter } from '../outbound/retry-after.ts';
import type { PushOutcome } from './vendors/vendor.ts';

/** The longest Retry-After of a vendor that is honoured. */
const MAX_RETRY_AFTER_MS = 3_600_000;

/** A failure to retry. */
export type FailedOutcome = Extract<PushOutcome, { outcome: 'failed' }>;

export const delivered: PushOutcome = { outcome: 'delivered' };

/** The vendor no longer knows the device. */
export function unregistered(category: string, code: number | null): PushOutcome {
  return { outcome: 'unregistered', category, code };
}

/** A retry does not help. */
export function refused(category: string, code: number | null): PushOutcome {
  return { outcome: 'refused', category, code };
}

/** The push must be retried; by default the problem concerns only this device. */
export function failed(
  category: string,
  more: { code?: number | null; retryAfterMs?: number | null; vendorWide?: boolean } = {},
): FailedOutcome {
  const { code = null, retryAfterMs = null, vendorWide = false } = more;
  return { outcome: 'failed', category, code, retryAfterMs, vendorWide };
}

/** A transport failure that concerns the vendor as a whole: no answer, no connection. */
export function transportFailure(error: unknown): FailedOutcome {
  const { name = '' } = error as { name?: string };
  const isLate = name === 'TimeoutError' || name === 'AbortError';
  return failed(isLate ? 'timeout' : failureCategoryOf(error as Error), { vendorWide: true });
}

/** A `Retry-After` header in milliseconds, bounded; null where there is none that can be parsed. */
export function parseBoundedRetryAfterMs(value: string | readonly string[] | undefined): number | null {
  return boundRetryAfter(parseRetryAfter(value, Date.now()));
}

/** The vendor's requested wait, up to the bound. */
export function boundRetryAfter(ms: number | null): number | null {
  return ms === null ? null : Math.min(ms, MAX_RETRY_AFTER_MS);
}
