import type { PushConfig } from '../config/config.ts';
import type { Log } from '../log.ts';
import type { AccountId } from '../model/ids.ts';
import { DatabaseAwayError, DatabaseLostError } from '../storage/database-error.ts';
import type { Pool } from '../storage/pool.ts';
import { claimDue, nextDueMs, type Claim } from '../storage/push-claims.ts';
import { settlePushes, type PushSettlement, type Verdict } from '../storage/push-settlement.ts';
import { readSubjects, type Subject } from '../storage/push-subjects.ts';
import { AccountLimit, type EndedPush } from './account-limit.ts';
import { Breaker, retryWaitMs } from './backoff.ts';
import type { DeviceTokens } from './device-tokens.ts';
import { Loop } from './loop.ts';
import { isWanted, noteOf } from './note.ts';
import { countOutcome, newPushCounts, type PushCounts } from './push-counts.ts';
import { GRACE_MS, sendPush } from './send.ts';
import type { PushOutcome, PushVendor } from './vendor.ts';

/** Somebody in the foreground sees what is written; whether they still are there is looked at this often. */
export const HOLD_MS = 60_000;
/** Beyond the time that a push may take: what was claimed and not settled by then is taken by somebody else. */
const CLAIM_MARGIN_MS = GRACE_MS + 5_000;
/** Rows of another node that died, and words that were lost, are found within this. */
const LOOK_MS = 15_000;
/** Rows that another node is taking are looked at again after this. */
const TAKEN_MS = 50;
const AWAY_MS = 2_000;
/** So often what became of pushes is noted again where that fails, but for a database that is away. */
const MAX_SETTLE_FAILURES = 5;
/** New rows are taken when so large a share of what may be under way is free: by ones they would cost a statement each. */
const FREE_SHARE = 0.4;
/** Rows that are taken at once: each with up to 13 KB of texts, where no two are of one conversation. */
const MAX_CLAIMED = 500;
/** And while nothing is under way: the sooner they are there, the sooner the first is sent (15 ms, of a thousand devices). */
const FIRST_CLAIMED = 100;
/** What became of pushes is noted together with what comes within this, while others are under way. */
const GATHER_MS = 20;
/** Rows are asked for in so many statements at once: while one is answered, what another brought is sent. */
const TAKERS = 2;
/** Where more has not been noted, nothing new is taken. */
const MAX_UNSETTLED = 2_000;

/** What a vendor's queue works with. */
export interface VendorQueueParts {
  readonly pool: Pool;
  readonly tokens: DeviceTokens;
  readonly config: PushConfig;
  readonly projectName: string;
  readonly isForeground: (account: AccountId) => boolean;
  /** Whoever is in the foreground so long after a message was there when it came. */
  readonly certainAfterMs: number;
  readonly log: Log;
}

/** Sends what waits for one vendor. What is wrong with it is nobody else's business. */
export class VendorQueue {
  readonly counts: PushCounts = newPushCounts();
  readonly #vendor: PushVendor;
  readonly #parts: VendorQueueParts;
  readonly #breaker: Breaker;
  /** Null: the vendor's own hosts answer, which no account can make slow. */
  readonly #accountLimit: AccountLimit | null;
  #inFlight = 0;
  #unsettled: PushSettlement[] = [];
  #settleFailures = 0;
  #endGathering: () => void = () => {};
  /** The last settlement failed. */
  #cannotSettle = false;
  /** When the database is asked for rows at the latest. */
  #lookAtMs = 0;
  /** There may be rows that the look under way did not find. */
  #hasNews = false;
  #stopping = false;
  #isAway = false;
  /** One asks for rows while another sends what it got. */
  readonly #taking: readonly Loop[];
  /** Rows that were asked for. */
  #asked = 0;
  /** The last look found as many as it asked for. */
  #hasMore = false;
  /** Beside the taking, so that neither waits for the other's statement. */
  readonly #settling: Loop;
  #working: Promise<unknown> | null = null;

  constructor(vendor: PushVendor, parts: VendorQueueParts) {
    this.#vendor = vendor;
    this.#parts = parts;
    this.#breaker = new Breaker(parts.config);
    this.#accountLimit = vendor.kind === 'web' ? new AccountLimit(parts.config.inFlight) : null;
    const failing = { restMs: AWAY_MS, onFailure: (error: unknown) => this.#reportAway(error) };
    const taking = { ...failing, turn: () => this.#take(), isOver: () => this.#stopping };
    this.#taking = Array.from({ length: TAKERS }, () => new Loop(taking));
    this.#settling = new Loop({ ...failing, turn: () => this.#settle(), isOver: () => this.#isSettled });
  }

  get vendor(): PushVendor {
    return this.#vendor;
  }

  /** Pushes that have no answer yet. */
  get inFlight(): number {
    return this.#inFlight;
  }

  /** How much longer nothing is sent, since the vendor as a whole has a problem; 0: it is sent. */
  get restMs(): number {
    return this.#breaker.restMs;
  }

  /** Does nothing while the vendor says that it cannot send. */
  start(): void {
    if (this.#vendor.problem === null)
      this.#working ??= Promise.all([...this.#taking, this.#settling].map((loop) => loop.run()));
  }

  /** Takes nothing new; resolves when everything under way is settled, or cannot be since the database is away. */
  async stop(): Promise<void> {
    this.#stopping = true;
    for (const loop of [...this.#taking, this.#settling]) loop.check();
    await this.#working;
  }

  /** There are new rows. */
  wake(): void {
    this.#lookAtMs = 0;
    this.#hasNews = true;
    this.#wakeTaking();
  }

  #wakeTaking(): void {
    for (const loop of this.#taking) loop.wake();
  }

  /** Whether it was stopped and nothing is left to do; what a database that is away did not hear of comes again. */
  get #isSettled(): boolean {
    if (!this.#stopping || this.#inFlight > 0 || this.#asked > 0) return false;
    return this.#unsettled.length === 0 || this.#cannotSettle;
  }

  get #untilLookMs(): number {
    // An answer wakes it, or the end of another look or of a settlement; before that there is no place for more.
    const isBusy = this.#inFlight > 0 || this.#asked > 0 || this.#unsettled.length > 0;
    if (isBusy && this.#room === 0) return LOOK_MS;
    return Math.max(this.#lookAtMs - performance.now(), this.#breaker.restMs, 0);
  }

  /** How many may be taken now: none while it would be few. */
  get #room(): number {
    const { inFlight } = this.#parts.config;
    const room = Math.min(inFlight, this.#breaker.allowance) - this.#inFlight - this.#asked;
    if (room <= 0 || this.#unsettled.length >= MAX_UNSETTLED) return 0;
    return this.#inFlight + this.#asked > 0 && room < inFlight * FREE_SHARE ? 0 : room;
  }

  async #take(): Promise<number> {
    const isIdle = this.#inFlight + this.#asked === 0;
    const limit = Math.min(this.#room, isIdle ? FIRST_CLAIMED : MAX_CLAIMED);
    if (limit === 0 || performance.now() < this.#lookAtMs) return this.#untilLookMs;
    // Whoever is at it finds all that there is, and looks again where there is a word meanwhile.
    if (this.#asked > 0 && !this.#hasMore) return LOOK_MS;
    this.#asked += limit;
    try {
      await this.#look(limit);
    } finally {
      this.#asked -= limit;
      // Until then there might have been something to settle.
      if (this.#stopping) this.#settling.check();
    }
    // While the vendor has these another one may ask for more.
    if (this.#hasMore) this.#wakeTaking();
    return this.#untilLookMs;
  }

  async #look(limit: number): Promise<void> {
    const { pool, config } = this.#parts;
    const { kind } = this.#vendor;
    this.#hasNews = false;
    const taken = await pool.run(async (sql) => {
      const claims = await claimDue(sql, kind, { limit, forMs: config.timeoutMs + CLAIM_MARGIN_MS });
      const subjects = await readSubjects(sql, claims);
      return { claims, subjects, dueMs: claims.length < limit ? await nextDueMs(sql, kind) : 0 };
    });
    this.#hasMore = taken.claims.length === limit;
    // Due and not to be had: another node is at it.
    const leastMs = taken.claims.length === 0 ? TAKEN_MS : 0;
    const untilMs = Math.min(Math.max(taken.dueMs ?? LOOK_MS, leastMs), LOOK_MS);
    // What was made known meanwhile may not have been there yet.
    if (!this.#hasNews) this.#lookAtMs = performance.now() + untilMs;
    this.#isAway = false;
    for (const [index, claim] of taken.claims.entries()) this.#dispatch(claim, taken.subjects[index] ?? null);
  }

  #dispatch(claim: Claim, subject: Subject | null): void {
    const verdict = this.#decide(subject);
    if (verdict !== null) return this.#enter({ ...verdict, claim });
    if (this.#accountLimit === null) return void this.#send(subject!, () => {});
    const { accountId } = subject!.claim;
    const release = this.#accountLimit.take(accountId);
    if (release !== null) void this.#send(subject!, release);
    else this.#enter({ verdict: 'held', waitMs: this.#accountLimit.waitMs(accountId), claim });
  }

  #enter(settlement: PushSettlement): void {
    this.#unsettled.push(settlement);
    this.#settling.wake();
  }

  /** What becomes of a row that is not to be sent; null: it is. */
  #decide(subject: Subject | null): Verdict | null {
    if (subject === null || !isWanted(subject)) return { verdict: 'done' };
    const { isForeground, certainAfterMs, config } = this.#parts;
    const { claim, ageMs } = subject;
    const isThere = isForeground(claim.accountId);
    // Held since its newest message was written, and there still: it was seen.
    if (isThere && ageMs >= Math.min(certainAfterMs, config.giveUpAfterMs)) return { verdict: 'done' };
    if (ageMs >= config.giveUpAfterMs) {
      this.counts.expired += 1;
      return { verdict: 'expired', category: 'expired', code: null };
    }
    if (!isThere) return null;
    return { verdict: 'held', waitMs: ageMs < HOLD_MS ? HOLD_MS - ageMs : Math.min(HOLD_MS, certainAfterMs - ageMs) };
  }

  async #send(subject: Subject, release: (ended: EndedPush) => void): Promise<void> {
    const { claim } = subject;
    const { tokens, config, projectName, log } = this.#parts;
    const { content, giveUpAfterMs, timeoutMs } = config;
    this.#inFlight += 1;
    const sentMs = performance.now();
    const note = noteOf(subject, { content, projectName, giveUpAfterMs });
    const outcome = await sendPush(this.#vendor, { target: claim, note }, { tokens, timeoutMs, log });
    this.#inFlight -= 1;
    const durationMs = performance.now() - sentMs;
    release({ category: 'category' in outcome ? outcome.category : null, durationMs });
    countOutcome(this.counts, outcome, durationMs);
    this.#enter({ ...this.#judge(outcome, claim, sentMs), claim });
    if (this.#inFlight === 0) this.#endGathering();
    if (this.#room > 0 || this.#inFlight === 0) this.#wakeTaking();
  }

  #judge(outcome: PushOutcome, claim: Claim, sentMs: number): Verdict {
    if (isAnswer(outcome) && this.#breaker.answered()) {
      this.#parts.log.info('a push service works again', { vendor: this.#vendor.kind });
    }
    if (outcome.outcome === 'failed') return this.#judgeFailure(outcome, claim, sentMs);
    if (outcome.outcome === 'delivered') return { verdict: 'done' };
    const { category, code } = outcome;
    if (outcome.outcome === 'refused') return { verdict: 'refused', category, code };
    return { verdict: 'removed', category, code, waitMs: this.#waitMs(claim, null) };
  }

  #judgeFailure(failure: PushOutcome & { readonly outcome: 'failed' }, claim: Claim, sentMs: number): Verdict {
    const { category, code, retryAfterMs } = failure;
    const vendor = this.#vendor.kind;
    // Cut by our own stop: the next start sends it.
    if (this.#stopping) return { verdict: 'held', waitMs: 0 };
    if (!failure.vendorWide) return { verdict: 'again', waitMs: this.#waitMs(claim, retryAfterMs) };
    if (this.#breaker.failed(sentMs, retryAfterMs)) {
      this.#parts.log.warn('a push service has a problem, and pushes wait for it', { vendor, category, code });
    }
    return { verdict: 'held', waitMs: this.#breaker.restMs };
  }

  #waitMs({ attempts }: Claim, retryAfterMs: number | null): number {
    return retryWaitMs(this.#parts.config, { failures: attempts + 1, retryAfterMs }, Math.random());
  }

  async #settle(): Promise<number> {
    if (this.#unsettled.length > 0 && this.#inFlight > 0) await this.#gather();
    const settlements = this.#unsettled;
    if (settlements.length === 0) return LOOK_MS;
    const { pool, config } = this.#parts;
    this.#unsettled = [];
    const removed = await pool
      .run((sql) => settlePushes(sql, settlements, config.giveUpAfterMs))
      .catch((error: unknown) => this.#keepUnsettled(settlements, error));
    this.#settleFailures = 0;
    this.#cannotSettle = false;
    this.#isAway = false;
    this.counts.removed += removed.length;
    this.#tell(settlements, removed.length);
    // What waits for less than until the next look, or grew meanwhile.
    this.wake();
    return LOOK_MS;
  }

  /** Until GATHER_MS are over, or nothing is under way any more. */
  async #gather(): Promise<void> {
    const gathered = Promise.withResolvers<void>();
    const timer = setTimeout(gathered.resolve, GATHER_MS);
    this.#endGathering = gathered.resolve;
    await gathered.promise;
    clearTimeout(timer);
  }

  /** They are tried again; if it is not the database's being away, a few times, for they come again by themselves. */
  #keepUnsettled(settlements: readonly PushSettlement[], error: unknown): never {
    this.#cannotSettle = true;
    const isAway = error instanceof DatabaseAwayError || error instanceof DatabaseLostError;
    this.#settleFailures += isAway ? 0 : 1;
    if (this.#settleFailures <= MAX_SETTLE_FAILURES) this.#unsettled = [...settlements, ...this.#unsettled];
    else this.#settleFailures = 0;
    throw error;
  }

  #tell(settlements: readonly PushSettlement[], removed: number): void {
    const { log } = this.#parts;
    const vendor = this.#vendor.kind;
    const given = (verdict: Verdict['verdict']): PushSettlement[] =>
      settlements.filter((each) => each.verdict === verdict);
    if (removed > 0) log.info('removed devices that their push service does not know', { vendor, devices: removed });
    const refused = given('refused');
    const [first] = refused;
    if (first !== undefined && 'category' in first) {
      log.warn('a push service refuses pushes', {
        vendor,
        pushes: refused.length,
        category: first.category,
        code: first.code,
      });
    }
    const expired = given('expired').length;
    if (expired > 0) log.warn('pushes were given up, since their time is over', { vendor, pushes: expired });
  }

  /** Once for each time that the database is away. */
  #reportAway(error: unknown): void {
    if (!this.#isAway) this.#parts.log.warn('pushes wait for the database', { vendor: this.#vendor.kind, error });
    this.#isAway = true;
  }
}

/** Whether the vendor itself looked at the push: what a driver refuses by itself, or a key at fault, says nothing of it. */
function isAnswer(outcome: PushOutcome): boolean {
  if (outcome.outcome === 'delivered') return true;
  const vendorWide = outcome.outcome === 'failed' && outcome.vendorWide;
  return !vendorWide && outcome.code !== null && outcome.category !== 'key';
}
