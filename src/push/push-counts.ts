import { DURATION_BOUNDS_S, Histogram } from '../histogram.ts';
import type { LastError } from './vendor-report.ts';
import type { PushOutcome } from './vendors/vendor.ts';

export const pushOutcomes = ['delivered', 'failed', 'unregistered', 'refused'] as const;

/** Counts of the pushes to one vendor, since the start of this process. */
export interface PushCounts {
  readonly outcomes: Record<(typeof pushOutcomes)[number], number>;
  /** The durations of pushes, from the call of the vendor's driver until the answer. */
  readonly durationS: Histogram;
  /** Devices that this server removed, since the vendor no longer knew them. */
  removedDevices: number;
  /** Pushes that expired before they were sent. */
  expiredPushes: number;
  lastError: LastError | null;
}

export function newPushCounts(): PushCounts {
  return {
    outcomes: { delivered: 0, failed: 0, unregistered: 0, refused: 0 },
    durationS: new Histogram(DURATION_BOUNDS_S),
    removedDevices: 0,
    expiredPushes: 0,
    lastError: null,
  };
}

/** Adds the outcome and the duration of a push to the counts. */
export function countOutcome(counts: PushCounts, outcome: PushOutcome, tookMs: number): void {
  counts.outcomes[outcome.outcome] += 1;
  counts.durationS.observe(tookMs / 1_000);
  if (outcome.outcome === 'delivered') return;
  counts.lastError = { category: outcome.category, code: outcome.code, at: new Date() };
}
