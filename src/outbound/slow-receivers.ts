/** A request that took longer was slow. */
export const SLOW_MS = 1_000;
/** The part of all places that slow receivers may hold. */
const SLOW_SHARE = 0.5;

/** True when a receiver whose last request ended so is likely to hold its place for long again. */
export function isSlowReceiver(last: { readonly category: string | null; readonly durationMs: number }): boolean {
  // A look-up that fails takes no time while the failure is remembered, and its whole time-out when it is not.
  return last.durationMs > SLOW_MS || last.category === 'timeout' || last.category === 'dns';
}

/** How many of these places slow receivers may hold together: at least one, or they would never be sent anything. */
export function maxSlowReceiverSlots(slots: number): number {
  return Math.max(1, Math.floor(slots * SLOW_SHARE));
}
