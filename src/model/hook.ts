/** The state of a reverse webhook, as it is shown. */
export type HookState = 'active' | 'failing' | 'parked' | 'paused';

/** The events that can change the state of a hook. */
export const hookStateTriggers = [
  'delivered',
  'failed',
  'failing for three days',
  'answered 410',
  'pause',
  'resume',
  'redeliver from',
  'skip the backlog',
  'delete',
  'restore',
] as const;
export type HookStateTrigger = (typeof hookStateTriggers)[number];

type NextStateByTrigger = Readonly<Partial<Record<HookStateTrigger, HookState | 'removed'>>>;

/** Transitions of every hook that is neither paused nor removed. */
const unpausedTransitions: NextStateByTrigger = { 'answered 410': 'removed', pause: 'paused', delete: 'removed' };
/** Transitions by which a failing hook becomes active. */
const recoveryTransitions: NextStateByTrigger = {
  delivered: 'active',
  resume: 'active',
  'redeliver from': 'active',
  'skip the backlog': 'active',
};

/**
 * All changes of state: the next state of a hook, by its state and by what happens to it. A trigger that is missing for
 * a state does not change the state. No code reads this table: states are derived (`hookState`).
 * `test/delivery/transitions.test.ts` puts a real hook through every cell, and `docs/reverse-webhooks.md` shows the
 * table.
 */
export const documentedHookTransitions: Readonly<Record<HookState | 'removed', NextStateByTrigger>> = {
  active: { ...unpausedTransitions, failed: 'failing' },
  failing: { ...unpausedTransitions, ...recoveryTransitions, 'failing for three days': 'parked' },
  parked: { ...unpausedTransitions, ...recoveryTransitions },
  // The results of requests that were under way at the pause are still recorded, but the hook stays paused.
  paused: { resume: 'active', delete: 'removed' },
  // Only a hook that its target's 410 removed can be restored.
  removed: { restore: 'active' },
};

/** The facts that a hook's state is derived from. */
export interface HookHealth {
  readonly pausedAt: Date | null;
  readonly failures: number;
  readonly failingSince: Date | null;
}

/**
 * The state of a hook at the time `nowMs`. It is derived and never stored, so that it cannot disagree with the
 * counters. A hook that has failed for `parkAfterMs` is `parked`; the server attempts its deliveries as before.
 */
export function hookState(health: HookHealth, nowMs: number, parkAfterMs: number): HookState {
  if (health.pausedAt !== null) return 'paused';
  if (health.failures === 0) return 'active';
  const failingMs = health.failingSince === null ? 0 : nowMs - health.failingSince.getTime();
  return failingMs >= parkAfterMs ? 'parked' : 'failing';
}

/** The conditions on a hook's counters that make a state; null: the state does not depend on the condition. */
export interface HookStateCriteria {
  readonly paused: boolean;
  readonly failedIfRelevant: boolean | null;
  /** Whether the hook has been failing for `parkAfterMs` or longer. */
  readonly longFailingIfRelevant: boolean | null;
}

/** The inverse of `hookState`, to find the hooks of a state among many: exactly these conditions make the state. */
export const criteriaByHookState: Readonly<Record<HookState, HookStateCriteria>> = {
  paused: { paused: true, failedIfRelevant: null, longFailingIfRelevant: null },
  active: { paused: false, failedIfRelevant: false, longFailingIfRelevant: null },
  failing: { paused: false, failedIfRelevant: true, longFailingIfRelevant: false },
  parked: { paused: false, failedIfRelevant: true, longFailingIfRelevant: true },
};
