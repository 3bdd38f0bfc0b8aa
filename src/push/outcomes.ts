import { failureCategoryOf } from '../outbound/failure.ts';
import { parseRetryAfter } from '../outbound/retry-after.ts';
import type { PushOutcome } from './vendors/vendor.ts';

/** The longest Retry-After of a vendor that is honoured, in milliseconds. */
const MAX_RETRY_AFTER_MS = 3_600_000;

/** The outcome of a push that failed and must be retried. */
export type FailedOutcome = Extract<PushOutcome, { outcome: 'failed' }>;

export const delivered: PushOutcome = { outcome: 'delivered' };

/** The outcome of a push to a device that the vendor no longer knows. */
export function unregisteredOutcome(category: string, code: number | null): PushOutcome {
  return { outcome: 'unregistered', category, code };
}

/** The outcome of a push that the vendor refuses, so that a retry does not help. */
export function refusedOutcome(category: string, code: number | null): PushOutcome {
  return { outcome: 'refused', category, code };
}

/**
 * The outcome of a push that must be retried. By default the problem concerns only this device, and not the vendor as a
 * whole.
 */
export function failedOutcome(
  category: string,
  more: { code?: number | null; retryAfterMs?: number | null; vendorWide?: boolean } = {},
): FailedOutcome {
  const { code = null, retryAfterMs = null, vendorWide = false } = more;
  return { outcome: 'failed', category, code, retryAfterMs, vendorWide };
}

/** The outcome of a push that got no answer or no connection. That concerns the vendor as a whole. */
export function transportFailure(error: unknown): FailedOutcome {
  const { name = '' } = error as { name?: string };
  const isLate = name === 'TimeoutError' || name === 'AbortError';
  return failedOutcome(isLate ? 'timeout' : failureCategoryOf(error as Error), { vendorWide: true });
}

/**
 * Parses a header `Retry-After` into milliseconds, at most MAX_RETRY_AFTER_MS. Null if the header is absent or invalid.
 */
export function parseBoundedRetryAfterMs(value: string | readonly string[] | undefined): number | null {
  return boundRetryAfter(parseRetryAfter(value, Date.now()));
}

/** Limits the wait that a vendor requests to MAX_RETRY_AFTER_MS. */
export function boundRetryAfter(ms: number | null): number | null {
  return ms === null ? null : Math.min(ms, MAX_RETRY_AFTER_MS);
}
