import { BoundedCache } from '../model/bounded-cache.ts';
import type { AccountId } from '../model/ids.ts';
import { isSlowReceiver, maxSlowReceiverSlots } from '../outbound/slow-receivers.ts';

/** The share of all pushes in flight that one account may have. */
const ACCOUNT_IN_FLIGHT_SHARE = 1 / 8;
/** How long an account stays slow after its last slow push. */
const SLOW_TTL_MS = 5 * 60_000;
/** Remembered slow accounts; those that were slow longest ago are forgotten. */
const MAX_REMEMBERED_SLOW_ACCOUNTS = 10_000;
/** Remembered accounts with waiting pushes. A forgotten account retries too early, which costs a claim. */
const MAX_REMEMBERED_WAITING_ACCOUNTS = 10_000;
/** The expected duration of a push if none is known. */
const ASSUMED_DURATION_IF_NOT_SLOW_MS = 250;
/** The bounds of a wait: a deferred row costs a claim and a settlement. */
const MIN_WAIT_MS = 50;
const MAX_WAIT_MS = 60_000;

/** The result of a push, as far as it affects its account. */
export interface EndedPushResult {
  readonly category: string | null;
  readonly durationMs: number;
}

/**
 * Limits the pushes in flight to the devices of one account, and to all slow accounts together. Clients choose the
 * addresses of web push: without these limits one person's silent hosts hold every slot until they time out. An account
 * is slow after a slow push, and slow accounts share half of the slots.
 */
export class AccountLimiter {
  readonly #maxPerAccount: number;
  readonly #maxSlowInFlight: number;
  readonly #now: () => number;
  readonly #active = new Map<AccountId, number>();
  /** For slow accounts: the duration of their last slow push. */
  readonly #lastSlowDurationMsByAccount: BoundedCache<AccountId, number>;
  /** The last retry time that a waiting push got, by account. */
  readonly #lastGrantedRetryAtMsByAccount = new BoundedCache<AccountId, number>(MAX_REMEMBERED_WAITING_ACCOUNTS);
  /** The last retry time that a waiting push of any slow account got. */
  #lastGrantedRetryAtMsOfSlowAccounts = 0;
  #slowInFlight = 0;

  /**
   * @param inFlight pushes that may be in flight in all.
   * @param now milliseconds that only go forward; tests set their own.
   */
  constructor(inFlight: number, now: () => number = () => performance.now()) {
    this.#maxPerAccount = Math.max(1, Math.floor(inFlight * ACCOUNT_IN_FLIGHT_SHARE));
    this.#maxSlowInFlight = maxSlowReceiverSlots(inFlight);
    this.#now = now;
    this.#lastSlowDurationMsByAccount = new BoundedCache(MAX_REMEMBERED_SLOW_ACCOUNTS, {
      ttl: SLOW_TTL_MS,
      ttlResolution: 0,
      perf: { now },
    });
  }

  /** Takes a slot for a push, and returns the function that releases it; null when there is no free slot. */
  take(account: AccountId): ((ended: EndedPushResult) => void) | null {
    const slow = this.#lastSlowDurationMsByAccount.has(account);
    const active = this.#active.get(account) ?? 0;
    if (active >= this.#maxPerAccount || (slow && this.#slowInFlight >= this.#maxSlowInFlight)) return null;
    this.#active.set(account, active + 1);
    if (slow) this.#slowInFlight += 1;
    return (ended) => this.#release(account, slow, ended);
  }

  /**
   * The wait in ms before the retry of a push that got no slot. Each call returns the next turn, at the pace of the
   * account's pushes: a thousand waiting rows do not all come back at once.
   */
  reserveRetryWaitMs(account: AccountId): number {
    const lastMs = this.#lastSlowDurationMsByAccount.get(account);
    const attemptMs = this.#lastGrantedRetryAtMsByAccount.get(account) ?? 0;
    const accountAttemptMs = this.#computeNextAttemptAtMs(
      attemptMs,
      (lastMs ?? ASSUMED_DURATION_IF_NOT_SLOW_MS) / this.#maxPerAccount,
    );
    this.#lastGrantedRetryAtMsByAccount.set(account, accountAttemptMs);
    if (lastMs === undefined) return this.#waitMsUntilAttempt(accountAttemptMs);
    this.#lastGrantedRetryAtMsOfSlowAccounts = this.#computeNextAttemptAtMs(
      this.#lastGrantedRetryAtMsOfSlowAccounts,
      lastMs / this.#maxSlowInFlight,
    );
    return this.#waitMsUntilAttempt(Math.max(accountAttemptMs, this.#lastGrantedRetryAtMsOfSlowAccounts));
  }

  #release(account: AccountId, wasSlow: boolean, ended: EndedPushResult): void {
    const active = this.#active.get(account)! - 1;
    if (active === 0) this.#active.delete(account);
    else this.#active.set(account, active);
    if (wasSlow) this.#slowInFlight -= 1;
    if (isSlowReceiver(ended)) this.#lastSlowDurationMsByAccount.set(account, ended.durationMs);
  }

  #computeNextAttemptAtMs(lastAttemptMs: number, stepMs: number): number {
    const nowMs = this.#now();
    return Math.min(Math.max(lastAttemptMs, nowMs) + stepMs, nowMs + MAX_WAIT_MS);
  }

  #waitMsUntilAttempt(attemptMs: number): number {
    return Math.max(MIN_WAIT_MS, attemptMs - this.#now());
  }
}
