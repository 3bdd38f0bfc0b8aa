import { setTimeout as wait } from 'node:timers/promises';
import { LogFollower } from '../bus/log-follower.ts';
import type { ConversationId } from '../model/ids.ts';
import { findUnindexedConversations, indexNext } from '../storage/messages/indexing.ts';
import type { Services } from '../operations/core/services.ts';

/** Delay after a notification, so that messages written meanwhile share a batch. */
const DEBOUNCE_MS = 1_000;
/** The interval of checks whether posts still wait to be written. */
const YIELD_POLL_MS = 50;
/** Work that is older than this no longer yields to posts, or a busy server would never index its messages. */
const MAX_YIELD_MS = 30_000;
/** The indexer takes a share of the database, not all of it. */
const PAUSE_FACTOR = 4;
const BUSY_PAUSE_FACTOR = 39;
/** With this many deliveries in flight the server counts as busy; a few may hang at a receiver that does not answer. */
const BUSY_DELIVERIES = 32;
const SWEEP_INTERVAL_MS = 10 * 60_000;
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
  readonly #follower: LogFollower;
  /** Since when each check has found posts that wait; null: the last one found none. */
  #yieldingSinceMs: number | null = null;

  constructor(services: SearchAndMentionIndexerServices) {
    this.#services = services;
    const { bus, log, database } = services;
    this.#follower = new LogFollower({
      bus,
      log,
      events: ['messagesCommitted', 'nonMessageChangesCommitted'],
      findConversations: ({ after, limit }) =>
        database.general.run((sql) => findUnindexedConversations(sql, after, limit)),
      process: (conversations) => this.#index(conversations),
      // A transaction of one conversation is bounded, and blocks no other one.
      maxBatchSize: 1,
      newMessagesFirst: true,
      beforeTurn: (signal) => this.#yieldToPosts(signal),
      debounceMs: () => DEBOUNCE_MS,
      pauseFactor: () => (this.#isServerBusy ? BUSY_PAUSE_FACTOR : PAUSE_FACTOR),
      sweepIntervalMs: SWEEP_INTERVAL_MS,
      databaseRetryDelayMs: DATABASE_RETRY_MS,
      texts: {
        waitsForDatabase: 'searches and mentions wait for the database',
        conversationSkipped: 'a conversation could not be indexed',
      },
    });
  }

  start(): void {
    this.#follower.start();
  }

  /** Resolves when the current turn has ended. */
  stop(): Promise<void> {
    return this.#follower.stop();
  }

  async #index([id]: readonly ConversationId[]): Promise<ConversationId[]> {
    const result = await indexNext(this.#services.database.general, id!);
    return result.taken && result.more ? [id!] : [];
  }

  async #yieldToPosts(signal: AbortSignal): Promise<true> {
    while (this.#services.messageLog.depth > 0) {
      this.#yieldingSinceMs ??= performance.now();
      if (performance.now() - this.#yieldingSinceMs > MAX_YIELD_MS) return true;
      await wait(YIELD_POLL_MS, undefined, { signal });
    }
    this.#yieldingSinceMs = null;
    return true;
  }

  get #isServerBusy(): boolean {
    return this.#services.messageLog.depth > 0 || this.#services.deliveriesInFlight() >= BUSY_DELIVERIES;
  }
}
