import { BoundedCache } from '../model/bounded-cache.ts';
import type { AccountId } from '../model/ids.ts';
import { isSlowReceiver, maxSlowReceiverSlots } from '../outbound/slow-receivers.ts';

/** The largest share of the slots for pushes in flight that one account may use. */
const ACCOUNT_IN_FLIGHT_SHARE = 1 / 8;
/** The time after its last slow push for which an account counts as slow. */
const SLOW_ACCOUNT_TTL_MS = 5 * 60_000;
/** The most slow accounts that are remembered. The account that was slow longest ago is forgotten first. */
const MAX_REMEMBERED_SLOW_ACCOUNTS = 10_000;
/**
 * The most accounts with waiting pushes that are remembered. A forgotten account's pushes are retried too early, which
 * costs claims.
 */
const MAX_REMEMBERED_WAITING_ACCOUNTS = 10_000;
/** The assumed duration of a push to an account that is not slow. */
const ASSUMED_DURATION_IF_NOT_SLOW_MS = 250;
/** The shortest and the longest wait of a push that got no slot. Each further wait costs a claim and a settlement. */
const MIN_RETRY_WAIT_MS = 50;
const MAX_RETRY_WAIT_MS = 60_000;

/**
 * The result of a push, from which the limiter decides whether the account is slow. `category`: that of a failure, or
 * null.
 */
export interface EndedPushResult {
  readonly category: string | null;
  readonly durationMs: number;
}

/**
 * Limits the pushes in flight to the devices of one account, and to those of all slow accounts together. Clients choose
 * the addresses of web push. Without these limits, pushes to one person's silent hosts would hold every slot until they
 * time out. An account is slow for some minutes after a slow push. Slow accounts share half of the slots.
 */
export class AccountLimiter {
  readonly #maxInFlightPerAccount: number;
  readonly #maxSlowInFlight: number;
  readonly #now: () => number;
  readonly #inFlightByAccount = new Map<AccountId, number>();
  /** The duration of the last slow push of each slow account, in milliseconds. */
  readonly #lastSlowDurationMsByAccount: BoundedCache<AccountId, number>;
  /** For each account, the latest of the retry times that its pushes without a slot got. */
  readonly #lastGrantedRetryAtMsByAccount = new BoundedCache<AccountId, number>(MAX_REMEMBERED_WAITING_ACCOUNTS);
  /** The latest of the retry times that pushes of slow accounts got. */
  #lastGrantedRetryAtMsOfSlowAccounts = 0;
  #slowInFlight = 0;

  /**
   * @param maxInFlight the number of slots: pushes of all accounts that may be in flight at once.
   * @param now monotonic clock in milliseconds; tests set their own.
   */
  constructor(maxInFlight: number, now: () => number = () => performance.now()) {
    this.#maxInFlightPerAccount = Math.max(1, Math.floor(maxInFlight * ACCOUNT_IN_FLIGHT_SHARE));
    this.#maxSlowInFlight = maxSlowReceiverSlots(maxInFlight);
    this.#now = now;
    this.#lastSlowDurationMsByAccount = new BoundedCache(MAX_REMEMBERED_SLOW_ACCOUNTS, {
      ttl: SLOW_ACCOUNT_TTL_MS,
      ttlResolution: 0,
      perf: { now },
    });
  }

  /** Takes a slot for a push, and returns the function that releases it; null when there is no free slot. */
  take(account: AccountId): ((ended: EndedPushResult) => void) | null {
    const isSlow = this.#lastSlowDurationMsByAccount.has(account);
    const inFlight = this.#inFlightByAccount.get(account) ?? 0;
    if (inFlight >= this.#maxInFlightPerAccount || (isSlow && this.#slowInFlight >= this.#maxSlowInFlight)) return null;
    this.#inFlightByAccount.set(account, inFlight + 1);
    if (isSlow) this.#slowInFlight += 1;
    return (ended) => this.#release(account, isSlow, ended);
  }

  /**
   * Returns the wait in ms before the retry of a push that got no slot. Each call returns a later time, at the pace at
   * which the account's slots become free. So a thousand waiting pushes are not all retried at once.
   */
  reserveRetryWaitMs(account: AccountId): number {
    const lastMs = this.#lastSlowDurationMsByAccount.get(account);
    const lastRetryAtMs = this.#lastGrantedRetryAtMsByAccount.get(account) ?? 0;
    const accountRetryAtMs = this.#computeNextAttemptAtMs(
      lastRetryAtMs,
      (lastMs ?? ASSUMED_DURATION_IF_NOT_SLOW_MS) / this.#maxInFlightPerAccount,
    );
    this.#lastGrantedRetryAtMsByAccount.set(account, accountRetryAtMs);
    if (lastMs === undefined) return this.#waitMsUntilAttempt(accountRetryAtMs);
    this.#lastGrantedRetryAtMsOfSlowAccounts = this.#computeNextAttemptAtMs(
      this.#lastGrantedRetryAtMsOfSlowAccounts,
      lastMs / this.#maxSlowInFlight,
    );
    return this.#waitMsUntilAttempt(Math.max(accountRetryAtMs, this.#lastGrantedRetryAtMsOfSlowAccounts));
  }

  #release(account: AccountId, wasSlow: boolean, ended: EndedPushResult): void {
    const inFlight = this.#inFlightByAccount.get(account)! - 1;
    if (inFlight === 0) this.#inFlightByAccount.delete(account);
    else this.#inFlightByAccount.set(account, inFlight);
    if (wasSlow) this.#slowInFlight -= 1;
    if (isSlowReceiver(ended)) this.#lastSlowDurationMsByAccount.set(account, ended.durationMs);
  }

  #computeNextAttemptAtMs(lastAttemptAtMs: number, stepMs: number): number {
    const nowMs = this.#now();
    return Math.min(Math.max(lastAttemptAtMs, nowMs) + stepMs, nowMs + MAX_RETRY_WAIT_MS);
  }

  #waitMsUntilAttempt(attemptAtMs: number): number {
    return Math.max(MIN_RETRY_WAIT_MS, attemptAtMs - this.#now());
  }
}
