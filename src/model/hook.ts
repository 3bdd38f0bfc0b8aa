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

/** What a state says of a hook's counters; null where either will do. */
export interface HookFacts {
  readonly paused: boolean;
  readonly failed: boolean | null;
  /** Failing for `parkAfterMs` or longer. */
  readonly long: boolean | null;
}

/** `hookState` the other way round, for finding the hooks of a state among many: exactly these facts make it. */
export const hookFacts: Readonly<Record<HookState, HookFacts>> = {
  paused: { paused: true, failed: null, long: null },
  active: { paused: false, failed: false, long: null },
  failing: { paused: false, failed: true, long: false },
  parked: { paused: false, failed: true, long: true },
};
