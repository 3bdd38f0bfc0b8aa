import { coversItem, type ExpectedItem, type ExpectedItems } from './expected-items.ts';
import { isAccepted, type Arrival, type DeliveryKey, type HookHistory, type Moment } from './history.ts';

/** The messages that `only` of a redelivery requests again: they come outside the order of the other messages. */
export class OnlyRequests {
  readonly #history: HookHistory;
  readonly #requests: readonly { readonly key: DeliveryKey; readonly asked: Moment }[];

  constructor(history: HookHistory, expected: ExpectedItems) {
    this.#history = history;
    this.#requests = expected
      .hookActions('redelivered only')
      .filter(({ status }) => status === 202)
      // Messages that the hook has not got yet come in their order, so they are not in this list.
      .flatMap(({ messages, asked, answered }) =>
        messages.filter((key) => this.#wasOver(key, answered, expected)).map((key) => ({ key, asked })),
      );
  }

  /** Whether a request may be the delivery of a message that `only` requested. */
  isApart({ items, arrived }: Arrival): boolean {
    const [item] = items;
    if (item === undefined || items.length > 1 || item.eventRev !== null) return false;
    return this.#requests.some(({ key, asked }) => key === item.key && asked < arrived);
  }

  #wasOver(key: DeliveryKey, by: Moment, expected: ExpectedItems): boolean {
    const { arrivals, log } = this.#history;
    if (arrivals.some((each) => each.arrived < by && isAccepted(each) && each.items.some((item) => item.key === key))) {
      return true;
    }
    const item = expected.get(key);
    if (item === undefined) return false;
    return log.some((row) => isGivenUp(row.outcome) && coversItem(row, item)) || this.#isBeyond(item, by, expected);
  }

  /** Whether the hook had already got a later message, for example because `skip` left this one out. */
  #isBeyond({ position }: ExpectedItem, by: Moment, expected: ExpectedItems): boolean {
    const accepted = this.#history.arrivals.filter((each) => each.arrived < by && isAccepted(each));
    return accepted.some(({ items }) => items.some(({ key }) => (expected.get(key)?.position ?? -1) > position));
  }
}

const isGivenUp = (outcome: string): boolean => outcome === 'dead_lettered' || outcome === 'skipped';
