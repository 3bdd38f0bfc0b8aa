import { setTimeout as wait } from 'node:timers/promises';
import type { ConversationId } from '../model/ids.ts';
import { DatabaseAwayError, DatabaseLostError } from '../storage/database-error.ts';
import { digestNext, findUndigested, type DigestTurn } from '../storage/digest.ts';
import type { Services } from './services.ts';

/** Between a word and the work on it, so that what is written meanwhile is one batch with it. */
const GATHER_MS = 1_000;
/** Looked again after this whether posts still wait to be written. */
const YIELD_MS = 50;
/** Work that is older than this does not yield to posts any more, or a busy server would never find what it stores. */
const OVERDUE_MS = 30_000;
/** After a turn the worker rests so many times as long as the turn took: a share of the database, not all of it. */
const REST = 4;
const BUSY_REST = 39;
/** From so many deliveries under way on, the server is busy; a few may hang in a receiver that does not answer. */
const BUSY_DELIVERIES = 32;
/** Words may be lost, and a turn may fail: everything is looked through from time to time. */
const SWEEP_MS = 10 * 60_000;
const SWEEP_PAGE = 500;
/** Conversations that are remembered one by one; where more have changed, a sweep finds them. */
const MAX_WAITING = 10_000;
const AWAY_MS = 5_000;

/** What digesting works with. */
export type DigestServices = Pick<Services, 'database' | 'bus' | 'messageLog' | 'deliveriesInFlight' | 'log'>;

/**
 * Derives from messages what no post waits for: the words that searches look for, and who was mentioned. Follows each
 * conversation by its revs from where the database says it has got to, so that nothing is left out however the process
 * ended; nodes share the conversations among each other. Stays out of the way of posts and deliveries.
 */
export class Digest {
  readonly #services: DigestServices;
  /** Of which there was word since the last look. */
  readonly #heard = new Set<ConversationId>();
  /** In hand, in this order. */
  #waiting = new Set<ConversationId>();
  readonly #stopping = new AbortController();
  /** Where the sweep has got to; null: none is under way. */
  #sweptTo: number | null = 0;
  #waitingSince = performance.now();
  #isAway = false;
  #wake: () => void = () => {};
  #working: Promise<void> | null = null;
  #unsubscribe: () => void = () => {};
  #sweeping: NodeJS.Timeout | null = null;

  constructor(services: DigestServices) {
    this.#services = services;
  }

  /** Begins with a sweep over everything. */
  start(): void {
    if (this.#working !== null) return;
    this.#unsubscribe = this.#services.bus.subscribe({
      advanced: (conversations) => this.#hear(conversations.keys()),
      revised: (conversations) => this.#hear(conversations),
      gap: () => this.#sweep(),
    });
    this.#sweeping = setInterval(() => this.#sweep(), SWEEP_MS);
    this.#working = this.#work();
  }

  /** Resolves when the turn in hand is over; what waits is found again by the next start. */
  async stop(): Promise<void> {
    this.#unsubscribe();
    if (this.#sweeping !== null) clearInterval(this.#sweeping);
    this.#stopping.abort();
    this.#wake();
    await this.#working;
  }

  get #isIdle(): boolean {
    return this.#heard.size === 0 && !this.#hasWork;
  }

  get #hasWork(): boolean {
    return this.#waiting.size > 0 || this.#sweptTo !== null;
  }

  #hear(conversations: Iterable<ConversationId>): void {
    const wasIdle = this.#isIdle;
    for (const id of conversations) this.#heard.add(id);
    if (this.#heard.size + this.#waiting.size > MAX_WAITING) {
      this.#heard.clear();
      this.#waiting.clear();
      this.#sweptTo = 0;
    }
    if (wasIdle) this.#begin();
  }

  #sweep(): void {
    const wasIdle = this.#isIdle;
    this.#sweptTo = 0;
    if (wasIdle) this.#begin();
  }

  #begin(): void {
    this.#waitingSince = performance.now();
    this.#wake();
  }

  async #work(): Promise<void> {
    const { signal } = this.#stopping;
    try {
      while (!signal.aborted) {
        if (this.#isIdle) await new Promise<void>((resolve) => (this.#wake = resolve));
        if (!this.#hasWork) await wait(GATHER_MS, undefined, { signal });
        // What is new goes before what a sweep found, which may take hours after an upgrade.
        this.#waiting = new Set([...this.#heard, ...this.#waiting]);
        this.#heard.clear();
        const until = performance.now() + GATHER_MS;
        while (this.#hasWork && performance.now() < until) await this.#turn(signal);
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  /** One page of the sweep, or one batch of the conversation that waits longest; then a rest. */
  async #turn(signal: AbortSignal): Promise<void> {
    await this.#yieldToPosts(signal);
    const startedAt = performance.now();
    try {
      if (this.#waiting.size === 0) await this.#sweepOn();
      else await this.#digestNext();
      this.#isAway = false;
    } catch (error) {
      this.#report(error);
      // Whatever was in hand is found again.
      this.#sweptTo = 0;
      await wait(AWAY_MS, undefined, { signal });
      return;
    }
    await wait((performance.now() - startedAt) * (this.#isBusy ? BUSY_REST : REST), undefined, { signal });
  }

  /** Once for each time that the database is away. */
  #report(error: unknown): void {
    if (!this.#isAway) this.#services.log.warn('searches and mentions wait for the database', { error });
    this.#isAway = true;
  }

  async #digestNext(): Promise<void> {
    const [id] = this.#waiting as Iterable<ConversationId> as [ConversationId];
    this.#waiting.delete(id);
    this.#heard.delete(id);
    let turn: DigestTurn;
    try {
      turn = await digestNext(this.#services.database.general, id);
    } catch (error) {
      if (error instanceof DatabaseAwayError || error instanceof DatabaseLostError) throw error;
      // This one only: the others go on, and the next word or sweep brings it back.
      this.#services.log.warn('a conversation could not be digested', { conversation: id, error });
      return;
    }
    // Behind the others, so that a long conversation does not hold them up.
    if (turn.taken && turn.more) this.#waiting.add(id);
  }

  async #sweepOn(): Promise<void> {
    const after = this.#sweptTo!;
    const found = await this.#services.database.general.run((sql) => findUndigested(sql, after, SWEEP_PAGE));
    // A sweep that was asked for meanwhile begins anew.
    if (this.#sweptTo === after) this.#sweptTo = found.length < SWEEP_PAGE ? null : found.at(-1)!;
    for (const id of found) this.#waiting.add(id);
  }

  async #yieldToPosts(signal: AbortSignal): Promise<void> {
    while (this.#services.messageLog.depth > 0) {
      if (performance.now() - this.#waitingSince > OVERDUE_MS) return;
      await wait(YIELD_MS, undefined, { signal });
    }
    // The posts let the worker through: what waits from here on is not overdue before its time.
    this.#waitingSince = performance.now();
  }

  get #isBusy(): boolean {
    return this.#services.messageLog.depth > 0 || this.#services.deliveriesInFlight() >= BUSY_DELIVERIES;
  }
}
