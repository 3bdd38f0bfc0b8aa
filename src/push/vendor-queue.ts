import type { PushConfig } from '../config/services.ts';
import type { Log } from '../log.ts';
import type { AccountId } from '../model/ids.ts';
import { DatabaseUnavailableError, CommitUnknownError } from '../storage/db/database-error.ts';
import type { Pool } from '../storage/db/pool.ts';
import { claimDuePushes, msUntilNextDuePush, type PushClaim } from '../storage/push/push-claims.ts';
import { settlePushes, type PushSettlement, type PushDisposition } from '../storage/push/push-settlement.ts';
import { readNotifiedContent, type NotifiedContent } from '../storage/push/push-content.ts';
import { AccountLimiter, type EndedPushResult } from './account-limiter.ts';
import { retryDelayMs } from '../model/retry-policy.ts';
import { CircuitBreaker } from './circuit-breaker.ts';
import type { DeviceTokenCache } from './device-tokens.ts';
import { WorkerLoop } from './worker-loop.ts';
import { isWantedByOwner, buildNotification } from './notification.ts';
import { countOutcome, newPushCounts, type PushCounts } from './push-counts.ts';
import { SEND_GRACE_MS, sendPush } from './send-push.ts';
import type { PushOutcome, PushVendor } from './vendors/vendor.ts';

/**
 * A pending push is held while its account is in the foreground, where the user sees new messages. The account is
 * checked again at this interval.
 */
export const FOREGROUND_HOLD_MS = 60_000;
/**
 * A claim lasts this much longer than the time limit of a push. After that, another node may claim its unsettled rows.
 */
const CLAIM_TIME_BEYOND_SEND_TIMEOUT_MS = SEND_GRACE_MS + 5_000;
/** Rows of a dead node, and rows without a notification, are found within this time. */
const POLL_MS = 15_000;
/** The retry interval for rows that another node is claiming. */
const CONTENDED_RETRY_MS = 50;
const DATABASE_RETRY_DELAY_MS = 2_000;
/**
 * After more failed tries than this to store outcomes of pushes, the outcomes are dropped. Failures during an outage of
 * the database do not count.
 */
const MAX_NON_OUTAGE_SETTLE_FAILURES = 5;
/**
 * While pushes are in flight, rows are claimed only if at least this share of the slots is free. Otherwise nearly every
 * row would cost a statement of its own.
 */
const MIN_FREE_SLOT_SHARE = 0.4;
/** The most rows of one claim. If each is for another conversation, up to 13 KB of texts are read for each row. */
const MAX_ROWS_PER_CLAIM = 500;
/**
 * The most rows of a claim while nothing is in flight: a smaller claim returns sooner. With a thousand devices, the
 * first push started 15 ms sooner.
 */
const MAX_ROWS_IF_NONE_IN_FLIGHT = 100;
/** Outcomes that arrive within this time are stored together, while other pushes are in flight. */
const SETTLE_DELAY_MS = 20;
/** The number of loops that claim rows: while one waits for its statement, the rows of the other are sent. */
const CLAIM_LOOP_COUNT = 2;
/** While this number of outcomes or more wait to be stored, no new rows are claimed. */
const MAX_UNSETTLED_OUTCOMES = 2_000;

interface VendorQueueDeps {
  readonly pool: Pool;
  readonly tokens: DeviceTokenCache;
  readonly config: PushConfig;
  readonly projectName: string;
  readonly isForeground: (account: AccountId) => boolean;
  /** Milliseconds. An account in the foreground this long after a message came was there when the message came. */
  readonly maxPresenceStalenessMs: number;
  readonly log: Log;
}

/** Sends the pending pushes of one vendor. Problems of this vendor do not affect other vendors. */
export class VendorQueue {
  readonly counts: PushCounts = newPushCounts();
  readonly #vendor: PushVendor;
  readonly #deps: VendorQueueDeps;
  readonly #breaker: CircuitBreaker;
  /** Null for Google and Apple: all their pushes go to the vendor's hosts, which no account can slow down. */
  readonly #accountLimiter: AccountLimiter | null;
  #inFlight = 0;
  #unsettledOutcomes: PushSettlement[] = [];
  #nonOutageSettleFailures = 0;
  #endSettleDelayEarly: () => void = () => {};
  /** True: the last try to store outcomes failed. */
  #hasSettleFailed = false;
  /** No claim begins before this time, unless the queue is woken. */
  #nextPollAtMs = 0;
  /** True: the queue was woken after the last claim began, so there may be rows that this claim did not find. */
  #wasWokenSinceClaim = false;
  #isStopping = false;
  #isDatabaseUnavailable = false;
  /** Several loops, so that one can claim rows while those of another are sent. */
  readonly #claimLoops: readonly WorkerLoop[];
  /** The number of rows that the running claims may return. */
  #requestedRows = 0;
  /** True: the last claim returned as many rows as it may, so more rows may be due. */
  #hasMoreDue = false;
  /** The loop that stores outcomes. It is separate, so that it and claims do not wait for each other's statements. */
  readonly #settleLoop: WorkerLoop;
  #running: Promise<unknown> | null = null;

  constructor(vendor: PushVendor, deps: VendorQueueDeps) {
    this.#vendor = vendor;
    this.#deps = deps;
    this.#breaker = new CircuitBreaker(deps.config.pushRetryDelaysMs);
    this.#accountLimiter = vendor.kind === 'web' ? new AccountLimiter(deps.config.maxInFlightPerVendor) : null;
    const failureOptions = {
      failureRetryDelayMs: DATABASE_RETRY_DELAY_MS,
      onFailure: (error: unknown) => this.#reportUnavailable(error),
    };
    const claimLoopOptions = {
      ...failureOptions,
      stepReturningDelayMs: () => this.#claimAndGetDelayMs(),
      isDone: () => this.#isStopping,
    };
    this.#claimLoops = Array.from({ length: CLAIM_LOOP_COUNT }, () => new WorkerLoop(claimLoopOptions));
    this.#settleLoop = new WorkerLoop({
      ...failureOptions,
      stepReturningDelayMs: () => this.#settleAndGetDelayMs(),
      isDone: () => this.#canEndAfterStop,
    });
  }

  get vendor(): PushVendor {
    return this.#vendor;
  }

  /** The number of pushes that have no answer yet. */
  get inFlight(): number {
    return this.#inFlight;
  }

  /** The remaining pause in ms after a problem of the vendor as a whole; 0: pushes are sent. */
  get backoffMs(): number {
    return this.#breaker.remainingBackoffMs;
  }

  /** Starts the loops. Does nothing if the vendor's configuration has a problem. */
  start(): void {
    if (this.#vendor.problem === null)
      this.#running ??= Promise.all([...this.#claimLoops, this.#settleLoop].map((loop) => loop.run()));
  }

  /** Claims no new rows. Resolves when the outcomes of all pushes in flight are stored, or storing them has failed. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    for (const loop of [...this.#claimLoops, this.#settleLoop]) loop.wakeToRecheckDone();
    await this.#running;
  }

  /** Makes the queue claim rows soon: there may be new rows, or rows that are due earlier than expected. */
  wake(): void {
    this.#nextPollAtMs = 0;
    this.#wasWokenSinceClaim = true;
    this.#wakeClaimLoops();
  }

  #wakeClaimLoops(): void {
    for (const loop of this.#claimLoops) loop.wake();
  }

  /**
   * True if the queue is stopping, without a push in flight or a running claim, and all outcomes are stored. Outcomes
   * that the last try could not store do not count: they are lost, and their rows are claimed again later.
   */
  get #canEndAfterStop(): boolean {
    if (!this.#isStopping || this.#inFlight > 0 || this.#requestedRows > 0) return false;
    return this.#unsettledOutcomes.length === 0 || this.#hasSettleFailed;
  }

  get #msUntilNextClaim(): number {
    // Too few slots are free. The answer to a push, the end of another claim, or a settlement wakes the loop.
    const isBusy = this.#inFlight > 0 || this.#requestedRows > 0 || this.#unsettledOutcomes.length > 0;
    if (isBusy && this.#claimableSlots === 0) return POLL_MS;
    return Math.max(this.#nextPollAtMs - performance.now(), this.#breaker.remainingBackoffMs, 0);
  }

  /** The number of rows that may be claimed now; 0 if too few slots are free, or too many outcomes are not stored. */
  get #claimableSlots(): number {
    const { maxInFlightPerVendor: inFlight } = this.#deps.config;
    const capacity = Math.min(inFlight, this.#breaker.allowedInFlight) - this.#inFlight - this.#requestedRows;
    if (capacity <= 0 || this.#unsettledOutcomes.length >= MAX_UNSETTLED_OUTCOMES) return 0;
    return this.#inFlight + this.#requestedRows > 0 && capacity < inFlight * MIN_FREE_SLOT_SHARE ? 0 : capacity;
  }

  async #claimAndGetDelayMs(): Promise<number> {
    const isIdle = this.#inFlight + this.#requestedRows === 0;
    const limit = Math.min(this.#claimableSlots, isIdle ? MAX_ROWS_IF_NONE_IN_FLIGHT : MAX_ROWS_PER_CLAIM);
    if (limit === 0 || performance.now() < this.#nextPollAtMs) return this.#msUntilNextClaim;
    // Another claim is running. It should find all due rows, as the last claim did. Its loop claims again if it is
    // woken meanwhile.
    if (this.#requestedRows > 0 && !this.#hasMoreDue) return POLL_MS;
    this.#requestedRows += limit;
    try {
      await this.#claimRows(limit);
    } finally {
      this.#requestedRows -= limit;
      // The settle loop may end only after this claim, which could have added outcomes to store.
      if (this.#isStopping) this.#settleLoop.wakeToRecheckDone();
    }
    // While these rows are sent, the other loop may claim more.
    if (this.#hasMoreDue) this.#wakeClaimLoops();
    return this.#msUntilNextClaim;
  }

  async #claimRows(limit: number): Promise<void> {
    const { pool, config } = this.#deps;
    const { kind } = this.#vendor;
    this.#wasWokenSinceClaim = false;
    const claimed = await pool.run(async (sql) => {
      const claims = await claimDuePushes(sql, kind, {
        limit,
        forMs: config.timeoutMs + CLAIM_TIME_BEYOND_SEND_TIMEOUT_MS,
      });
      const subjects = await readNotifiedContent(sql, claims);
      return { claims, subjects, dueMs: claims.length < limit ? await msUntilNextDuePush(sql, kind) : 0 };
    });
    this.#hasMoreDue = claimed.claims.length === limit;
    // If nothing was claimed although rows are due, another node is claiming them.
    const leastMs = claimed.claims.length === 0 ? CONTENDED_RETRY_MS : 0;
    const pollDelayMs = Math.min(Math.max(claimed.dueMs ?? POLL_MS, leastMs), POLL_MS);
    // If the queue was woken during the claim, the next claim follows at once: this claim may not have seen the newest
    // rows.
    if (!this.#wasWokenSinceClaim) this.#nextPollAtMs = performance.now() + pollDelayMs;
    this.#isDatabaseUnavailable = false;
    for (const [index, claim] of claimed.claims.entries()) this.#dispatch(claim, claimed.subjects[index] ?? null);
  }

  #dispatch(claim: PushClaim, subject: NotifiedContent | null): void {
    const verdict = this.#verdictInsteadOfSending(subject);
    if (verdict !== null) return this.#addSettlement({ ...verdict, claim });
    if (this.#accountLimiter === null) return void this.#send(subject!, () => {});
    const { accountId } = subject!.claim;
    const release = this.#accountLimiter.take(accountId);
    if (release !== null) void this.#send(subject!, release);
    else this.#addSettlement({ verdict: 'held', waitMs: this.#accountLimiter.reserveRetryWaitMs(accountId), claim });
  }

  #addSettlement(settlement: PushSettlement): void {
    this.#unsettledOutcomes.push(settlement);
    this.#settleLoop.wake();
  }

  /** The disposition of a row that is not sent; null: the row is sent. */
  #verdictInsteadOfSending(subject: NotifiedContent | null): PushDisposition | null {
    if (subject === null || !isWantedByOwner(subject)) return { verdict: 'done' };
    const { isForeground, maxPresenceStalenessMs, config } = this.#deps;
    const { claim, ageMs } = subject;
    const isInForeground = isForeground(claim.accountId);
    // An account that is still in the foreground this long after the newest message has seen the message.
    if (isInForeground && ageMs >= Math.min(maxPresenceStalenessMs, config.pushExpiresAfterMs))
      return { verdict: 'done' };
    if (ageMs >= config.pushExpiresAfterMs) {
      this.counts.expiredPushes += 1;
      return { verdict: 'expired', category: 'expired', code: null };
    }
    if (!isInForeground) return null;
    return {
      verdict: 'held',
      waitMs:
        ageMs < FOREGROUND_HOLD_MS
          ? FOREGROUND_HOLD_MS - ageMs
          : Math.min(FOREGROUND_HOLD_MS, maxPresenceStalenessMs - ageMs),
    };
  }

  async #send(subject: NotifiedContent, release: (ended: EndedPushResult) => void): Promise<void> {
    const { claim } = subject;
    const { tokens, config, projectName, log } = this.#deps;
    const { content, pushExpiresAfterMs, timeoutMs } = config;
    this.#inFlight += 1;
    const sentAtMs = performance.now();
    const notification = buildNotification(subject, { content, projectName, pushExpiresAfterMs });
    const outcome = await sendPush(this.#vendor, { target: claim, notification }, { tokens, timeoutMs, log });
    this.#inFlight -= 1;
    const durationMs = performance.now() - sentAtMs;
    release({ category: 'category' in outcome ? outcome.category : null, durationMs });
    countOutcome(this.counts, outcome, durationMs);
    this.#addSettlement({ ...this.#verdictFor(outcome, claim, sentAtMs), claim });
    if (this.#inFlight === 0) this.#endSettleDelayEarly();
    if (this.#claimableSlots > 0 || this.#inFlight === 0) this.#wakeClaimLoops();
  }

  #verdictFor(outcome: PushOutcome, claim: PushClaim, sentAtMs: number): PushDisposition {
    if (provesVendorWorks(outcome) && this.#breaker.recordSuccessDetectingRecovery()) {
      this.#deps.log.info('a push service works again', { vendor: this.#vendor.kind });
    }
    if (outcome.outcome === 'failed') return this.#verdictForFailedPush(outcome, claim, sentAtMs);
    if (outcome.outcome === 'delivered') return { verdict: 'done' };
    const { category, code } = outcome;
    if (outcome.outcome === 'refused') return { verdict: 'rejected', category, code };
    return { verdict: 'removed', category, code, waitMs: this.#retryDelayMs(claim, null) };
  }

  #verdictForFailedPush(
    failure: PushOutcome & { readonly outcome: 'failed' },
    claim: PushClaim,
    sentAtMs: number,
  ): PushDisposition {
    const { category, code, retryAfterMs } = failure;
    const vendor = this.#vendor.kind;
    // The push may have failed only because this node is stopping. It is sent after the next start.
    if (this.#isStopping) return { verdict: 'held', waitMs: 0 };
    if (!failure.vendorWide) return { verdict: 'again', waitMs: this.#retryDelayMs(claim, retryAfterMs) };
    if (this.#breaker.recordFailureDetectingOutage(sentAtMs, retryAfterMs)) {
      this.#deps.log.warn('a push service has a problem, and pushes wait for it', { vendor, category, code });
    }
    return { verdict: 'held', waitMs: this.#breaker.remainingBackoffMs };
  }

  #retryDelayMs({ attempts }: PushClaim, retryAfterMs: number | null): number {
    const { pushRetryDelaysMs: retryDelaysMs, pushExpiresAfterMs } = this.#deps.config;
    const policy = { retryDelaysMs, retryAfterMaxMs: pushExpiresAfterMs };
    return retryDelayMs(policy, { failures: attempts + 1, retryAfterMs }, Math.random());
  }

  async #settleAndGetDelayMs(): Promise<number> {
    if (this.#unsettledOutcomes.length > 0 && this.#inFlight > 0) await this.#awaitMoreSettlements();
    const settlements = this.#unsettledOutcomes;
    if (settlements.length === 0) return POLL_MS;
    const { pool, config } = this.#deps;
    this.#unsettledOutcomes = [];
    const removedDevices = await pool
      .run((sql) => settlePushes(sql, settlements, config.pushExpiresAfterMs))
      .catch((error: unknown) => this.#requeueOrDropSettlements(settlements, error));
    this.#nonOutageSettleFailures = 0;
    this.#hasSettleFailed = false;
    this.#isDatabaseUnavailable = false;
    this.counts.removedDevices += removedDevices.length;
    this.#logSettlements(settlements, removedDevices.length);
    // Some settled rows may be due before the next poll, or may have got further messages meanwhile.
    this.wake();
    return POLL_MS;
  }

  /** Waits for more outcomes: until SETTLE_DELAY_MS have passed, or no push is in flight. */
  async #awaitMoreSettlements(): Promise<void> {
    const delay = Promise.withResolvers<void>();
    const timer = setTimeout(delay.resolve, SETTLE_DELAY_MS);
    this.#endSettleDelayEarly = delay.resolve;
    await delay.promise;
    clearTimeout(timer);
  }

  /**
   * Keeps the settlements for another try. Drops them after several failures that are no outage of the database: the
   * claims on their rows expire, and the rows are then sent again.
   */
  #requeueOrDropSettlements(settlements: readonly PushSettlement[], error: unknown): never {
    this.#hasSettleFailed = true;
    const isDatabaseUnavailable = error instanceof DatabaseUnavailableError || error instanceof CommitUnknownError;
    this.#nonOutageSettleFailures += isDatabaseUnavailable ? 0 : 1;
    if (this.#nonOutageSettleFailures <= MAX_NON_OUTAGE_SETTLE_FAILURES)
      this.#unsettledOutcomes = [...settlements, ...this.#unsettledOutcomes];
    else this.#nonOutageSettleFailures = 0;
    throw error;
  }

  #logSettlements(settlements: readonly PushSettlement[], removedDeviceCount: number): void {
    const { log } = this.#deps;
    const vendor = this.#vendor.kind;
    const withVerdict = (verdict: PushDisposition['verdict']): PushSettlement[] =>
      settlements.filter((each) => each.verdict === verdict);
    if (removedDeviceCount > 0)
      log.info('removed devices that their push service does not know', { vendor, devices: removedDeviceCount });
    const rejected = withVerdict('rejected');
    const [first] = rejected;
    if (first !== undefined && 'category' in first) {
      log.warn('a push service refuses pushes', {
        vendor,
        pushes: rejected.length,
        category: first.category,
        code: first.code,
      });
    }
    const expiredCount = withVerdict('expired').length;
    if (expiredCount > 0) log.warn('pushes were given up, since their time is over', { vendor, pushes: expiredCount });
  }

  /** Logs only the first failure of an outage of the database. */
  #reportUnavailable(error: unknown): void {
    if (!this.#isDatabaseUnavailable)
      this.#deps.log.warn('pushes wait for the database', { vendor: this.#vendor.kind, error });
    this.#isDatabaseUnavailable = true;
  }
}

/**
 * Whether the vendor itself handled the push: a driver's own refusal, or a wrong key, proves nothing about the vendor.
 */
function provesVendorWorks(outcome: PushOutcome): boolean {
  if (outcome.outcome === 'delivered') return true;
  const vendorWide = outcome.outcome === 'failed' && outcome.vendorWide;
  return !vendorWide && outcome.code !== null && outcome.category !== 'key';
}
