import {
  isAccepted,
  type Arrival,
  type DeliveryKey,
  type History,
  type HookHistory,
  type HookSettings,
  type Moment,
} from './history.ts';

/**
 * The actions, kinds of hooks and results that a run has to cover. Each has to occur in at least the share MIN_SHARE of
 * the histories.
 */
const REQUIRED = [
  'posted',
  'message.updated',
  'message.deleted',
  'killed',
  'redelivered from',
  'redelivered only',
  'restored',
  'messages removed',
  'events expired',
  'hooks strict',
  'hooks none',
  'hooks with a batch',
  'hooks with events',
  'hooks without events',
  'deliveries repeated after an end of the server',
] as const;
const MIN_SHARE = 0.05;

/** Counts how often each action and result occurs, and in how many histories. */
export class Coverage {
  #histories = 0;
  readonly #total = new Map<string, number>();
  readonly #historiesWith = new Map<string, number>();

  add(history: History): void {
    this.#histories += 1;
    const names = namesOf(history);
    for (const name of names) increment(this.#total, name);
    for (const name of new Set(names)) increment(this.#historiesWith, name);
  }

  /** A line for each counted action and result, the most frequent first. */
  describe(): string[] {
    const sorted = [...this.#total].sort(([, a], [, b]) => b - a);
    return sorted.map(
      ([name, count]) =>
        `${String(count).padStart(6)} ${name}, in ${this.#historiesWith.get(name)} of ${this.#histories} histories`,
    );
  }

  /**
   * The actions, kinds of hooks and results that occurred in too few histories for the run to prove anything about
   * them.
   */
  missing(): string[] {
    return REQUIRED.filter((name) => (this.#historiesWith.get(name) ?? 0) < MIN_SHARE * this.#histories);
  }
}

function namesOf({ actions, hooks }: History): string[] {
  const settings = actions.flatMap((action) =>
    action.type === 'registered' || action.type === 'changed' ? [action.settings] : [],
  );
  return [
    ...actions.map(({ type }) => type),
    ...settings.flatMap(kindsOf),
    ...hooks.flatMap(({ log }) => log.map(({ outcome }) => `log rows ${outcome}`)),
    ...hooks.flatMap((hook) => deliveriesOf(hook, actions)),
  ];
}

function kindsOf({ order, batch, events }: HookSettings): string[] {
  return [
    `hooks ${order}`,
    ...(batch > 1 ? ['hooks with a batch'] : []),
    events.length > 0 ? 'hooks with events' : 'hooks without events',
  ];
}

function deliveriesOf({ arrivals }: HookHistory, actions: History['actions']): string[] {
  const ends = actions.filter(({ type }) => type === 'killed' || type === 'stopped' || type === 'restored');
  const acceptedAt = new Map<DeliveryKey, Moment>();
  return arrivals.flatMap((arrival) => {
    const names = ['deliveries'];
    const before = arrival.items.flatMap(({ key }) => acceptedAt.get(key) ?? []);
    if (before.length > 0) names.push('deliveries repeated after they were accepted');
    const isAcross = (moment: Moment): boolean =>
      ends.some(({ asked }) => moment < asked && asked < arrival.arrived) && !wasAskedFor(actions, moment, arrival);
    if (before.some(isAcross)) names.push('deliveries repeated after an end of the server');
    if (isAccepted(arrival)) for (const { key } of arrival.items) acceptedAt.set(key, arrival.arrived);
    return names;
  });
}

function wasAskedFor(actions: History['actions'], since: Moment, { hook, arrived }: Arrival): boolean {
  return actions.some(
    (action) =>
      (action.type === 'redelivered from' || action.type === 'redelivered only') &&
      action.hook === hook &&
      since < action.answered &&
      action.asked < arrived,
  );
}

function increment(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1);
}
