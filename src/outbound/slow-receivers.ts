/** A request is slow when it takes longer. */
export const SLOW_MS = 1_000;
/** The share of all slots that slow receivers may hold. */
const SLOW_SHARE = 0.5;

/** True when a receiver with this last outcome is likely to hold its slot for long again. */
export function isSlowReceiver(last: { readonly category: string | null; readonly durationMs: number }): boolean {
  // A failed look-up takes no time while the failure is cached, and its whole time-out when it is not.
  return last.durationMs > SLOW_MS || last.category === 'timeout' || last.category === 'dns';
}

/** The number of these slots that slow receivers may hold together: at least one, or they would never get a request. */
export function maxSlowReceiverSlots(slots: number): number {
  return Math.max(1, Math.floor(slots * SLOW_SHARE));
}
