import { KlatchError } from '../../errors.ts';
import type { AccountId } from '../../model/ids.ts';
import { RateLimiter } from './rate-limiter.ts';

const SEARCHES_PER_SECOND = 10;
const SEARCH_BURST = 100;
const SEARCH_LIMITER_KEYS = 10_000;

/** Searches by person, their bots included: so many in a time, and one after the other, so that nobody takes all the connections. */
export class SearchLimiter {
  readonly #rateLimiter = new RateLimiter<number>({
    perSecond: SEARCHES_PER_SECOND,
    burst: SEARCH_BURST,
    keys: SEARCH_LIMITER_KEYS,
  });
  readonly #searchingAccounts = new Set<AccountId>();

  /** Runs a search of the person. Throws `rate_limited` instead while another one of theirs is under way, or past the rate. */
  async run<T>(person: AccountId, search: () => Promise<T>): Promise<T> {
    if (this.#searchingAccounts.has(person) || this.#rateLimiter.reserve(person, 0) === null)
      throw new KlatchError('rate_limited');
    this.#searchingAccounts.add(person);
    try {
      return await search();
    } finally {
      this.#searchingAccounts.delete(person);
    }
  }
}
