/** What a reverse webhook's state reads as; `docs/reverse-webhooks.md` has the transitions. */
export type HookState = 'active' | 'failing' | 'parked' | 'paused';

/** What the state follows from. */
export interface HookHealth {
  readonly pausedAt: Date | null;
  readonly failures: number;
  readonly failingSince: Date | null;
}

/**
 * The state at a moment: it is derived, never stored, so that it cannot disagree with the counters. `parked` is failing
 * for `parkAfterMs` and changes nothing about the attempts.
 */
export function hookState(health: HookHealth, nowMs: number, parkAfterMs: number): HookState {
  if (health.pausedAt !== null) return 'paused';
  if (health.failures === 0) return 'active';
  const failingMs = health.failingSince === null ? 0 : nowMs - health.failingSince.getTime();
  return failingMs >= parkAfterMs ? 'parked' : 'failing';
}
