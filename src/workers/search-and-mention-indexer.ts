import { setTimeout as wait } from 'node:timers/promises';
import { LogFollower } from '../bus/log-follower.ts';
import type { ConversationId } from '../model/ids.ts';
import { findUnindexedConversations, indexNext } from '../storage/messages/indexing.ts';
import type { Services } from '../operations/core/services.ts';

/** The delay after a notification, so that messages that are written meanwhile share a batch. */
const DEBOUNCE_MS = 1_000;
/** While posts wait to be written, the indexer checks at this interval whether they still do. */
const YIELD_POLL_MS = 50;
/** The indexer waits for posts at most this long; otherwise a busy server would never index its messages. */
const MAX_YIELD_MS = 30_000;
/**
 * After each turn the indexer rests for this many times the duration of the turn, so that it uses only a share of the
 * database. A busy server uses `BUSY_PAUSE_FACTOR`.
 */
const PAUSE_FACTOR = 4;
const BUSY_PAUSE_FACTOR = 39;
/** With this many deliveries in flight the server counts as busy. Fewer may only be waiting for slow receivers. */
const BUSY_DELIVERIES = 32;
const SWEEP_INTERVAL_MS = 10 * 60_000;
const DATABASE_RETRY_MS = 5_000;

export type SearchAndMentionIndexerServices = Pick<
  Services,
  'database' | 'bus' | 'messageLog' | 'deliveriesInFlight' | 'log'
>;

/**
 * Derives words for searches, and mentions, from messages after they are committed. For each conversation the database
 * stores the rev up to which it is indexed, so no change is left out, even if the process crashes. Each conversation is
 * indexed by one node at a time. The indexer lets posts and deliveries go first.
 */
export class SearchAndMentionIndexer {
  readonly #services: SearchAndMentionIndexerServices;
  readonly #follower: LogFollower;
  /**
   * The time since which every check has found posts that wait to be written, on the monotonic clock; null: the last
   * check found none.
   */
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
      // Each transaction indexes one conversation: the transaction stays short, and locks no other conversation.
      maxBatchSize: 1,
      notifiedBeforeSwept: true,
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

  /** Stops the indexer; resolves when the current turn has ended. */
  stop(): Promise<void> {
    return this.#follower.stop();
  }

  async #index([id]: readonly ConversationId[]): Promise<ConversationId[]> {
    const result = await indexNext(this.#services.database.general, id!);
    return result.acquired && result.more ? [id!] : [];
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
