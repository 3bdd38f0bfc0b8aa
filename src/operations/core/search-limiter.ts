import { KlatchError } from '../../errors.ts';
import type { AccountId } from '../../model/ids.ts';
import { RateLimiter } from './rate-limiter.ts';

const SEARCHES_PER_PERSON_PER_SECOND = 10;
const SEARCH_BURST_PER_PERSON = 100;
const MAX_RATE_LIMITED_PERSONS = 10_000;

/**
 * Limits a person and the person's bots, together, to one search at a time and to a rate. So nobody can use up all
 * database connections.
 */
export class SearchLimiterByPerson {
  readonly #rateLimiterByPerson = new RateLimiter<number>({
    perSecond: SEARCHES_PER_PERSON_PER_SECOND,
    burst: SEARCH_BURST_PER_PERSON,
    maxKeys: MAX_RATE_LIMITED_PERSONS,
  });
  readonly #searchingPersons = new Set<AccountId>();

  /**
   * Runs a search for the person. Throws `rate_limited` if another search of the person is under way, or if the
   * person's searches are too frequent.
   */
  async run<T>(person: AccountId, search: () => Promise<T>): Promise<T> {
    if (this.#searchingPersons.has(person) || this.#rateLimiterByPerson.reserve(person, 0) === null)
      throw new KlatchError('rate_limited');
    this.#searchingPersons.add(person);
    try {
      return await search();
    } finally {
      this.#searchingPersons.delete(person);
    }
  }
}
