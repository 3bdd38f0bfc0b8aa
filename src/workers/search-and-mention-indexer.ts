import { setTimeout as wait } from 'node:timers/promises';
import type { ConversationId } from '../model/ids.ts';
import { DatabaseUnavailableError, CommitUnknownError } from '../storage/db/database-error.ts';
import { indexNext, findUnindexedConversations, type IndexingRun } from '../storage/messages/indexing.ts';
import type { Services } from '../operations/core/services.ts';

/** Between a word and the work on it, so that what is written meanwhile is one batch with it. */
const DEBOUNCE_MS = 1_000;
/** Looked again after this whether posts still wait to be written. */
const YIELD_POLL_MS = 50;
/** Work that is older than this does not yield to posts any more, or a busy server would never find what it stores. */
const MAX_YIELD_MS = 30_000;
/** After a turn the worker rests so many times as long as the turn took: a share of the database, not all of it. */
const PAUSE_FACTOR = 4;
const BUSY_PAUSE_FACTOR = 39;
/** From so many deliveries under way on, the server is busy; a few may hang in a receiver that does not answer. */
const BUSY_DELIVERIES = 32;
/** Words may be lost, and a turn may fail: everything is looked through from time to time. */
const SWEEP_INTERVAL_MS = 10 * 60_000;
const SWEEP_PAGE_SIZE = 500;
/** Conversations that are remembered one by one; where more have changed, a sweep finds them. */
const MAX_QUEUED_CONVERSATIONS = 10_000;
const DATABASE_RETRY_MS = 5_000;

/** What the search indexer works with. */
export type SearchAndMentionIndexerServices = Pick<
  Services,
  'database' | 'bus' | 'messageLog' | 'deliveriesInFlight' | 'log'
>;

/**
 * Derives from messages what no post waits for: the words that searches look for, and who was mentioned. Follows each
 * conversation by its revs from where the database says it has got to, so that nothing is left out however the process
 * ended; nodes share the conversations among each other. Stays out of the way of posts and deliveries.
 */
export class SearchAndMentionIndexer {
  readonly #services: SearchAndMentionIndexerServices;
  /** Of which there was word since the last look. */
  readonly #notified = new Set<ConversationId>();
  /** In hand, in this order. */
  #queue = new Set<ConversationId>();
  readonly #stopping = new AbortController();
  /** Where the sweep has got to; null: none is under way. */
  #sweepPosition: number | null = 0;
  #workWaitingSince = performance.now();
  #isDatabaseUnavailable = false;
  #wake: () => void = () => {};
  #running: Promise<void> | null = null;
  #unsubscribe: () => void = () => {};
  #sweepTimer: NodeJS.Timeout | null = null;

  constructor(services: SearchAndMentionIndexerServices) {
    this.#services = services;
  }

  /** Begins with a sweep over everything. */
  start(): void {
    if (this.#running !== null) return;
    this.#unsubscribe = this.#services.bus.subscribe({
      messagesCommitted: (conversations) => this.#enqueue(conversations.keys()),
      nonMessageChangesCommitted: (conversations) => this.#enqueue(conversations),
      resync: (kinds) => {
        if (kinds.has('messagesCommitted') || kinds.has('nonMessageChangesCommitted')) this.#requestSweep();
      },
    });
    this.#sweepTimer = setInterval(() => this.#requestSweep(), SWEEP_INTERVAL_MS);
    this.#running = this.#run();
  }

  /** Resolves when the turn in hand is over; what waits is found again by the next start. */
  async stop(): Promise<void> {
    this.#unsubscribe();
    if (this.#sweepTimer !== null) clearInterval(this.#sweepTimer);
    this.#stopping.abort();
    this.#wake();
    await this.#running;
  }

  get #isIdle(): boolean {
    return this.#notified.size === 0 && !this.#hasWork;
  }

  get #hasWork(): boolean {
    return this.#queue.size > 0 || this.#sweepPosition !== null;
  }

  #enqueue(conversations: Iterable<ConversationId>): void {
    const wasIdle = this.#isIdle;
    for (const id of conversations) this.#notified.add(id);
    if (this.#notified.size + this.#queue.size > MAX_QUEUED_CONVERSATIONS) {
      this.#notified.clear();
      this.#queue.clear();
      this.#sweepPosition = 0;
    }
    if (wasIdle) this.#wakeWorker();
  }

  #requestSweep(): void {
    const wasIdle = this.#isIdle;
    this.#sweepPosition = 0;
    if (wasIdle) this.#wakeWorker();
  }

  #wakeWorker(): void {
    this.#workWaitingSince = performance.now();
    this.#wake();
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    try {
      while (!signal.aborted) {
        if (this.#isIdle) await new Promise<void>((resolve) => (this.#wake = resolve));
        if (!this.#hasWork) await wait(DEBOUNCE_MS, undefined, { signal });
        // What is new goes before what a sweep found, which may take hours after an upgrade.
        this.#queue = new Set([...this.#notified, ...this.#queue]);
        this.#notified.clear();
        const until = performance.now() + DEBOUNCE_MS;
        while (this.#hasWork && performance.now() < until) await this.#runStep(signal);
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  /** One page of the sweep, or one batch of the conversation that waits longest; then a rest. */
  async #runStep(signal: AbortSignal): Promise<void> {
    await this.#yieldToPosts(signal);
    const startedAt = performance.now();
    try {
      if (this.#queue.size === 0) await this.#sweepPage();
      else await this.#indexNext();
      this.#isDatabaseUnavailable = false;
    } catch (error) {
      this.#logUnavailable(error);
      // Whatever was in hand is found again.
      this.#sweepPosition = 0;
      await wait(DATABASE_RETRY_MS, undefined, { signal });
      return;
    }
    await wait((performance.now() - startedAt) * (this.#isServerBusy ? BUSY_PAUSE_FACTOR : PAUSE_FACTOR), undefined, {
      signal,
    });
  }

  /** Once for each time that the database is away. */
  #logUnavailable(error: unknown): void {
    if (!this.#isDatabaseUnavailable) this.#services.log.warn('searches and mentions wait for the database', { error });
    this.#isDatabaseUnavailable = true;
  }

  async #indexNext(): Promise<void> {
    const [id] = this.#queue as Iterable<ConversationId> as [ConversationId];
    this.#queue.delete(id);
    this.#notified.delete(id);
    let result: IndexingRun;
    try {
      result = await indexNext(this.#services.database.general, id);
    } catch (error) {
      if (error instanceof DatabaseUnavailableError || error instanceof CommitUnknownError) throw error;
      // This one only: the others go on, and the next word or sweep brings it back.
      this.#services.log.warn('a conversation could not be indexed', { conversation: id, error });
      return;
    }
    // Behind the others, so that a long conversation does not hold them up.
    if (result.taken && result.more) this.#queue.add(id);
  }

  async #sweepPage(): Promise<void> {
    const after = this.#sweepPosition!;
    const found = await this.#services.database.general.run((sql) =>
      findUnindexedConversations(sql, after, SWEEP_PAGE_SIZE),
    );
    // A sweep that was asked for meanwhile begins anew.
    if (this.#sweepPosition === after) this.#sweepPosition = found.length < SWEEP_PAGE_SIZE ? null : found.at(-1)!;
    for (const id of found) this.#queue.add(id);
  }

  async #yieldToPosts(signal: AbortSignal): Promise<void> {
    while (this.#services.messageLog.depth > 0) {
      if (performance.now() - this.#workWaitingSince > MAX_YIELD_MS) return;
      await wait(YIELD_POLL_MS, undefined, { signal });
    }
    // The posts let the worker through: what waits from here on is not overdue before its time.
    this.#workWaitingSince = performance.now();
  }

  get #isServerBusy(): boolean {
    return this.#services.messageLog.depth > 0 || this.#services.deliveriesInFlight() >= BUSY_DELIVERIES;
  }
}
