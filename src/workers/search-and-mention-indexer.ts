import { setTimeout as wait } from 'node:timers/promises';
import type { ConversationId } from '../model/ids.ts';
import { DatabaseUnavailableError, CommitUnknownError } from '../storage/db/database-error.ts';
import { indexNext, findUnindexedConversations, type IndexingRun } from '../storage/messages/indexing.ts';
import type { Services } from '../operations/core/services.ts';

/** Delay after a notification, so that messages written meanwhile share a batch. */
const DEBOUNCE_MS = 1_000;
/** The interval of checks whether posts still wait to be written. */
const YIELD_POLL_MS = 50;
/** Work that is older than this no longer yields to posts, or a busy server would never index its messages. */
const MAX_YIELD_MS = 30_000;
/**
 * After a turn the worker rests for this multiple of the turn's time: it takes a share of the database, not all of it.
 */
const PAUSE_FACTOR = 4;
const BUSY_PAUSE_FACTOR = 39;
/** With this many deliveries in flight the server counts as busy; a few may hang at a receiver that does not answer. */
const BUSY_DELIVERIES = 32;
/** Notifications may be lost, and a turn may fail: a sweep examines everything from time to time. */
const SWEEP_INTERVAL_MS = 10 * 60_000;
const SWEEP_PAGE_SIZE = 500;
/** Conversations that are queued one by one; where more have changed, a sweep finds them. */
const MAX_QUEUED_CONVERSATIONS = 10_000;
const DATABASE_RETRY_MS = 5_000;

/** The services that the indexer uses. */
export type SearchAndMentionIndexerServices = Pick<
  Services,
  'database' | 'bus' | 'messageLog' | 'deliveriesInFlight' | 'log'
>;

/**
 * Derives data from messages that no post waits for: words for searches, and mentions. It follows each conversation by
 * its revs from its position in the database, so that it leaves nothing out however the process ended. Nodes share the
 * conversations among each other. It yields to posts and deliveries.
 */
export class SearchAndMentionIndexer {
  readonly #services: SearchAndMentionIndexerServices;
  /** Conversations with a notification since the last turn. */
  readonly #notified = new Set<ConversationId>();
  /** The conversations to index, in this order. */
  #queue = new Set<ConversationId>();
  readonly #stopping = new AbortController();
  /** The position of the sweep; null: none is running. */
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

  /** Resolves when the current turn has ended; the next start finds the remaining work again. */
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
        // New messages go before those of a sweep, which may take hours after an upgrade.
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
      // The sweep finds all remaining work again.
      this.#sweepPosition = 0;
      await wait(DATABASE_RETRY_MS, undefined, { signal });
      return;
    }
    await wait((performance.now() - startedAt) * (this.#isServerBusy ? BUSY_PAUSE_FACTOR : PAUSE_FACTOR), undefined, {
      signal,
    });
  }

  /** Logs once per outage of the database. */
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
      // Skips only this conversation: the next notification or sweep brings it back.
      this.#services.log.warn('a conversation could not be indexed', { conversation: id, error });
      return;
    }
    // Behind the others, so that a long conversation does not delay them.
    if (result.taken && result.more) this.#queue.add(id);
  }

  async #sweepPage(): Promise<void> {
    const after = this.#sweepPosition!;
    const found = await this.#services.database.general.run((sql) =>
      findUnindexedConversations(sql, after, SWEEP_PAGE_SIZE),
    );
    // If a sweep was requested meanwhile, it begins from the start.
    if (this.#sweepPosition === after) this.#sweepPosition = found.length < SWEEP_PAGE_SIZE ? null : found.at(-1)!;
    for (const id of found) this.#queue.add(id);
  }

  async #yieldToPosts(signal: AbortSignal): Promise<void> {
    while (this.#services.messageLog.depth > 0) {
      if (performance.now() - this.#workWaitingSince > MAX_YIELD_MS) return;
      await wait(YIELD_POLL_MS, undefined, { signal });
    }
    // No posts wait: the yield time of the remaining work starts here.
    this.#workWaitingSince = performance.now();
  }

  get #isServerBusy(): boolean {
    return this.#services.messageLog.depth > 0 || this.#services.deliveriesInFlight() >= BUSY_DELIVERIES;
  }
}
