import { coversItem, type ExpectedItem, type ExpectedItems } from './expected-items.ts';
import { isAccepted, seqOf, type Action, type Arrival, type DeliveryKey, type HookHistory } from './history.ts';
import { OnlyRequests } from './only-requests.ts';

const MAX_AT_ONCE = { strict: 1, none: 16 } as const;
const REFUSALS_UNTIL_SET_ASIDE = 5;
/** Actions that do not move the place in the log at which the hook continues. */
const IN_PLACE: readonly Action['type'][] = ['paused', 'resumed', 'redelivered only'];
const ENDS_OR_REMOVALS: readonly Action['type'][] = [
  'killed',
  'stopped',
  'restored',
  'messages removed',
  'events expired',
];
/**
 * Only these statuses count as refusals of the content: an item that is refused five times is set aside. Any other
 * failure is one of the receiver.
 */
const REFUSALS: readonly (number | null)[] = [400, 413, 422];

export const isRefused = ({ status }: Arrival): boolean => REFUSALS.includes(status);

export function judgeOrder(history: HookHistory, expected: ExpectedItems): string[] {
  return [
    ...judgeConcurrency(history, expected),
    ...judgePauses(history, expected),
    ...new OrderJudge(history, expected).judge(),
  ];
}

/** No attempt begins after the server has confirmed a pause. A request that is in flight may still arrive. */
function judgePauses({ arrivals }: HookHistory, expected: ExpectedItems): string[] {
  const violations: string[] = [];
  for (const { answered } of expected.hookActions('paused')) {
    const next = expected.actions.find(
      (action) =>
        action.asked > answered &&
        (action.type === 'resumed' || action.type === 'restored') &&
        (!('hook' in action) || action.hook === expected.hook),
    );
    const orders = expected.settingsWithin(0, answered).map(({ order }) => MAX_AT_ONCE[order]);
    const late = arrivals.filter(({ arrived }) => arrived > answered && arrived < (next?.asked ?? Infinity));
    if (late.length > Math.max(...orders)) violations.push(`${late.length} requests arrived while it was paused`);
  }
  return violations;
}

function judgeConcurrency({ arrivals }: HookHistory, expected: ExpectedItems): string[] {
  const violations: string[] = [];
  for (const [index, arrival] of arrivals.entries()) {
    const open = arrivals.slice(0, index).filter(({ ended }) => ended > arrival.arrived);
    const since = Math.min(arrival.arrived, ...open.map(({ arrived }) => arrived));
    const orders = expected.settingsWithin(since, arrival.arrived).map(({ order }) => order);
    const max = Math.max(...orders.map((order) => MAX_AT_ONCE[order]));
    if (open.length + 1 > max) violations.push(`${arrival.webhookId} was the ${open.length + 1}th request at once`);
  }
  return violations;
}

/** Judges the order of the requests of a hook while its settings say `strict`. */
class OrderJudge {
  readonly #violations: string[] = [];
  readonly #arrivals: readonly Arrival[];
  readonly #history: HookHistory;
  readonly #expected: ExpectedItems;
  readonly #only: OnlyRequests;
  readonly #accepted = new Set<DeliveryKey>();
  readonly #refusals = new Map<DeliveryKey, number>();
  #previous: Arrival | null = null;

  constructor(history: HookHistory, expected: ExpectedItems) {
    this.#history = history;
    this.#arrivals = history.arrivals;
    this.#expected = expected;
    this.#only = new OnlyRequests(history, expected);
  }

  judge(): string[] {
    for (const arrival of this.#arrivals) {
      const first = this.#expected.get(arrival.items[0]?.key ?? '');
      // An item that the hook must not get: `judgeContents` reports it.
      if (first === undefined) continue;
      const isApart = this.#only.isApart(arrival) && !this.#repeatsPrevious(arrival);
      const isInOrder = !isApart && this.#isStrictSince(first, arrival);
      if (isInOrder) {
        this.#judgeOvertaking(arrival, first);
        if (this.#previous !== null) this.#judgeSuccession(this.#previous, arrival);
        this.#previous = arrival;
      }
      this.#remember(arrival);
    }
    return this.#violations;
  }

  /**
   * Whether the request repeats the previous one, which failed. A failed item keeps its place in the order, also if
   * `only` requests it meanwhile.
   */
  #repeatsPrevious({ webhookId }: Arrival): boolean {
    return this.#previous !== null && !isAccepted(this.#previous) && this.#previous.webhookId === webhookId;
  }

  /**
   * Whether the hook has been strict since the item's change. An item from its time with `none` may still repeat
   * outside the order.
   */
  #isStrictSince({ change }: ExpectedItem, { arrived }: Arrival): boolean {
    return this.#expected.settingsWithin(change.asked, arrived).every(({ order }) => order === 'strict');
  }

  #judgeOvertaking(arrival: Arrival, first: ExpectedItem): void {
    const overtaken = this.#expected.items.find(
      (item) =>
        item.position < first.position &&
        item.isDue &&
        !this.#accepted.has(item.key) &&
        this.#isStrictSince(item, arrival) &&
        !this.#isGivenUp(item),
    );
    if (overtaken === undefined) return;
    this.#violations.push(`${arrival.webhookId} came before ${overtaken.key}, which was there before`);
  }

  #isGivenUp(item: ExpectedItem): boolean {
    if (
      this.#history.log.some((row) => row.outcome !== 'delivered' && row.outcome !== 'failed' && coversItem(row, item))
    ) {
      return true;
    }
    const firstSeq = firstSeqOf(this.#expected.actions);
    if (seqOf(item.message).number < firstSeq) return true;
    if ((this.#refusals.get(item.key) ?? 0) >= REFUSALS_UNTIL_SET_ASIDE) return true;
    // After five refusals of one item, the hook offers the items after it.
    return this.#refusals.has(item.key) && [...this.#refusals.values()].some((n) => n >= REFUSALS_UNTIL_SET_ASIDE);
  }

  #judgeSuccession(previous: Arrival, arrival: Arrival): void {
    if (this.#isInterrupted(previous, arrival) || isRefused(previous)) return;
    if (!isAccepted(previous) && this.#isRemoved(previous, arrival)) return;
    if (!isAccepted(previous)) {
      // After an item that was refused five times, the hook offers each later item once.
      const isOffer = [...this.#refusals.values()].some((count) => count >= REFUSALS_UNTIL_SET_ASIDE);
      if (arrival.webhookId !== previous.webhookId && !isOffer) {
        this.#violations.push(`${arrival.webhookId} came after ${previous.webhookId} failed, which was to be repeated`);
      }
      return;
    }
    const last = this.#expected.get(previous.items.at(-1)!.key);
    const first = this.#expected.get(arrival.items[0]!.key)!;
    if (last !== undefined && first.position <= last.position) {
      this.#violations.push(`${arrival.webhookId} came after ${previous.webhookId}, which is behind it`);
    }
  }

  /** Whether an action between two requests lets the hook continue at another place in the log. */
  #isInterrupted(previous: Arrival, arrival: Arrival): boolean {
    return this.#expected.actions.some(
      (action) =>
        action.asked < arrival.arrived &&
        this.#movesHook(action) &&
        (action.answered > previous.arrived || this.#wasOnItsWay(previous, action)),
    );
  }

  /**
   * Whether retention removed a failed item. The hook then skips the failed request, although it may have sent it
   * before.
   */
  #isRemoved({ items }: Arrival, { arrived }: Arrival): boolean {
    const firstSeq = firstSeqOf(this.#expected.actions.filter(({ asked }) => asked < arrived));
    return items.some(({ message }) => seqOf(message).number < firstSeq);
  }

  #movesHook(action: Action): boolean {
    if ('hook' in action) return action.hook === this.#expected.hook && !IN_PLACE.includes(action.type);
    return ENDS_OR_REMOVALS.includes(action.type);
  }

  /**
   * Whether the request may have been in flight during the action. After the answer to a change, a strict hook may have
   * one request that does not reflect the change yet.
   */
  #wasOnItsWay({ arrived }: Arrival, action: Action): boolean {
    if (!('hook' in action)) return false;
    return !this.#arrivals.some((each) => action.answered < each.arrived && each.arrived < arrived);
  }

  #remember(arrival: Arrival): void {
    for (const { key } of arrival.items) {
      if (isAccepted(arrival)) this.#accepted.add(key);
      if (isRefused(arrival)) this.#refusals.set(key, (this.#refusals.get(key) ?? 0) + 1);
    }
  }
}

/** The greatest first seq that retention gave the group in these actions; messages before it were removed. */
export function firstSeqOf(actions: readonly Action[]): number {
  return Math.max(1, ...actions.map((action) => (action.type === 'messages removed' ? action.firstSeq : 1)));
}
