/** What a reverse webhook's state reads as. */
export type HookState = 'active' | 'failing' | 'parked' | 'paused';

/** What can happen to a hook. */
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

/** What every hook that may send has in common. */
const unpausedTransitions: NextStateByTrigger = { 'answered 410': 'removed', pause: 'paused', delete: 'removed' };
/** What ends the failures of a hook. */
const recoveryTransitions: NextStateByTrigger = {
  delivered: 'active',
  resume: 'active',
  'redeliver from': 'active',
  'skip the backlog': 'active',
};

/**
 * Every change of state there is: what happens to a hook in a state, and which state it is in then. What is not named
 * leaves it as it is. No code looks into this table: states are derived (`hookState`), and
 * `test/delivery/transitions.test.ts` puts a real hook through every cell; `docs/reverse-webhooks.md` shows it.
 */
export const documentedHookTransitions: Readonly<Record<HookState | 'removed', NextStateByTrigger>> = {
  active: { ...unpausedTransitions, failed: 'failing' },
  failing: { ...unpausedTransitions, ...recoveryTransitions, 'failing for three days': 'parked' },
  parked: { ...unpausedTransitions, ...recoveryTransitions },
  // What was on its way when it was paused still counts, and changes nothing about that.
  paused: { resume: 'active', delete: 'removed' },
  // Only one that its target's 410 removed can be restored.
  removed: { restore: 'active' },
};

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
export interface HookStateCriteria {
  readonly paused: boolean;
  readonly failedIfRelevant: boolean | null;
  /** Failing for `parkAfterMs` or longer. */
  readonly longFailingIfRelevant: boolean | null;
}

/** `hookState` the other way round, for finding the hooks of a state among many: exactly these facts make it. */
export const criteriaByHookState: Readonly<Record<HookState, HookStateCriteria>> = {
  paused: { paused: true, failedIfRelevant: null, longFailingIfRelevant: null },
  active: { paused: false, failedIfRelevant: false, longFailingIfRelevant: null },
  failing: { paused: false, failedIfRelevant: true, longFailingIfRelevant: false },
  parked: { paused: false, failedIfRelevant: true, longFailingIfRelevant: true },
};
