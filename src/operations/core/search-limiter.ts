import { KlatchError } from '../../errors.ts';
import type { AccountId } from '../../model/ids.ts';
import { RateLimiter } from './rate-limiter.ts';

const SEARCHES_PER_SECOND = 10;
const SEARCHES_AT_ONCE = 100;
const SEARCHING_PEOPLE = 10_000;

/** Searches by person, their bots included: so many in a time, and one after the other, so that nobody takes all the connections. */
export class SearchLimiter {
  readonly #rate = new RateLimiter<number>({
    perSecond: SEARCHES_PER_SECOND,
    burst: SEARCHES_AT_ONCE,
    keys: SEARCHING_PEOPLE,
  });
  readonly #running = new Set<AccountId>();

  /** Runs a search of the person. Throws `rate_limited` instead while another one of theirs is under way, or past the rate. */
  async run<T>(person: AccountId, search: () => Promise<T>): Promise<T> {
    if (this.#running.has(person) || this.#rate.reserve(person, 0) === null) throw new KlatchError('rate_limited');
    this.#running.add(person);
    try {
      return await search();
    } finally {
      this.#running.delete(person);
    }
  }
}
