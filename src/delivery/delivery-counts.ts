import { DURATION_BOUNDS_S, Histogram } from '../histogram.ts';
import { failureCategories, type FailureCategory } from '../outbound/failure.ts';
import type { AttemptRecord } from '../storage/hooks/settlement.ts';

/** The outcome of an attempt; `unregistered`: the target answered 410 and its hook was removed. */
export const deliveryOutcomes = ['delivered', 'failed', 'unregistered'] as const;
type DeliveryOutcome = (typeof deliveryOutcomes)[number];

/** Counts attempts since the start, for metrics. */
export class DeliveryCounts {
  readonly attemptsByOutcome: Record<DeliveryOutcome, number> = { delivered: 0, failed: 0, unregistered: 0 };
  readonly failedAttemptsByCategory = Object.fromEntries(failureCategories.map((category) => [category, 0])) as Record<
    FailureCategory,
    number
  >;
  /** Attempts that were not the first of their request. */
  retries = 0;
  deadLettered = 0;
  readonly durationS: Readonly<Record<DeliveryOutcome, Histogram>> = {
    delivered: new Histogram(DURATION_BOUNDS_S),
    failed: new Histogram(DURATION_BOUNDS_S),
    unregistered: new Histogram(DURATION_BOUNDS_S),
  };

  add(attempt: AttemptRecord, isUnregistered = false): void {
    const outcome = attempt.outcome === 'delivered' ? 'delivered' : isUnregistered ? 'unregistered' : 'failed';
    this.attemptsByOutcome[outcome] += 1;
    if (outcome === 'failed' && attempt.category !== null)
      this.failedAttemptsByCategory[attempt.category as FailureCategory] += 1;
    if (attempt.attempt > 1) this.retries += 1;
    this.durationS[outcome].observe(attempt.durationMs / 1_000);
  }
}
