/** A request that takes longer than this counts as slow. */
export const SLOW_REQUEST_THRESHOLD_MS = 1_000;
/** The share of all slots for requests in flight that slow receivers may hold together. */
const SLOW_RECEIVER_SLOT_SHARE = 0.5;

/** True if a receiver will probably hold its next slot for long, by the outcome of its last request. */
export function isSlowReceiver(lastOutcome: {
  readonly category: string | null;
  readonly durationMs: number;
}): boolean {
  // A failed DNS look-up always counts as slow: it is quick only while the failure is cached, and else takes its whole
  // time-out.
  return (
    lastOutcome.durationMs > SLOW_REQUEST_THRESHOLD_MS ||
    lastOutcome.category === 'timeout' ||
    lastOutcome.category === 'dns'
  );
}

/**
 * How many of these slots slow receivers may hold together. It is at least one, since they would else never get a
 * request.
 */
export function maxSlowReceiverSlots(slots: number): number {
  return Math.max(1, Math.floor(slots * SLOW_RECEIVER_SLOT_SHARE));
}
