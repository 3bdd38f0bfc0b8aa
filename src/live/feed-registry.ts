import type { Bus } from '../bus/bus.ts';
import type { Log } from '../log.ts';
import type { ConversationId, LogEpoch, Rev } from '../model/ids.ts';
import { listChangedHeads } from '../storage/groups/conversation-heads.ts';
import type { Pool } from '../storage/db/pool.ts';
import type { Witness } from '../storage/messages/witness.ts';
import { ChangeReader } from './change-reader.ts';
import { Feed } from './feed.ts';
import type { LiveCounts } from './live-counts.ts';
import { logFailureByKind } from './log-failure.ts';

const FEEDS_PER_POLL_QUERY = 5_000;
/**
 * No notification follows a commit whose answer was lost or whose node died: the registry polls all feeds at this
 * interval.
 */
const POLL_INTERVAL_MS = 10_000;

/** Collects the conversations that change while the calling code reads a list of conversations. */
class ChangeRecorder {
  readonly #changedConversations = new Set<ConversationId>();
  #allMayHaveChanged = false;

  record(conversationId: ConversationId | null): void {
    if (conversationId === null) this.#allMayHaveChanged = true;
    else this.#changedConversations.add(conversationId);
  }

  mayHaveChanged(conversationId: ConversationId): boolean {
    return this.#allMayHaveChanged || this.#changedConversations.has(conversationId);
  }
}

interface FeedRegistryOptions {
  readonly bus: Bus;
  readonly pool: Pool;
  readonly counts: LiveCounts;
  readonly witness: Witness;
  readonly log: Log;
  /** Milliseconds between two polls of the heads of all feeds; 10 s by default. */
  readonly pollIntervalMs?: number;
}

/** The feeds of this node. Between `start` and `stop` the registry receives their notifications. */
export class FeedRegistry {
  readonly reader: ChangeReader;
  /** Called when the log began a new epoch: all subscriptions must be made again. */
  onNewEpoch: () => void = () => {};
  /** The newest log epoch that a read found; null until the first read. */
  #epoch: LogEpoch | null = null;
  readonly #bus: Bus;
  readonly #pool: Pool;
  readonly #log: Log;
  readonly #pollIntervalMs: number;
  readonly #feeds = new Map<ConversationId, Feed>();
  readonly #recorders = new Set<ChangeRecorder>();
  #unsubscribe: () => void = () => {};
  #pollTimer: NodeJS.Timeout | undefined;
  /** Whether a poll of all heads is running, and whether another one must follow. */
  #isPolling = false;
  #shouldPollAgain = false;

  constructor(options: FeedRegistryOptions) {
    this.#pollIntervalMs = options.pollIntervalMs ?? POLL_INTERVAL_MS;
    this.#bus = options.bus;
    this.#pool = options.pool;
    this.#log = options.log;
    const { counts, log, witness } = options;
    const observeEpoch = (epoch: LogEpoch): void => this.observeEpoch(epoch);
    this.reader = new ChangeReader(options.pool, { counts, log, witness, observeEpoch });
  }

  get feedCount(): number {
    return this.#feeds.size;
  }

  start(): void {
    this.#unsubscribe = this.#bus.subscribe({
      messagesCommitted: (headByConversation) => {
        for (const conversationId of headByConversation.keys()) this.#recordChange(conversationId)?.wake();
      },
      nonMessageChangesCommitted: (conversationIds) => {
        for (const conversationId of conversationIds) {
          const feed = this.#recordChange(conversationId);
          feed?.invalidateCache();
          feed?.wake();
        }
      },
      resync: (eventKinds) => {
        if (!eventKinds.has('messagesCommitted') && !eventKinds.has('nonMessageChangesCommitted')) return;
        for (const recorder of this.#recorders) recorder.record(null);
        for (const feed of this.#feeds.values()) feed.invalidateCache();
        void this.#poll();
      },
    });
    this.#pollTimer = setInterval(() => void this.#poll(), this.#pollIntervalMs);
  }

  stop(): void {
    this.#unsubscribe();
    clearInterval(this.#pollTimer);
    this.reader.stop();
  }

  get(conversationId: ConversationId): Feed | null {
    return this.#feeds.get(conversationId) ?? null;
  }

  ids(): ConversationId[] {
    return [...this.#feeds.keys()];
  }

  /**
   * Records the log epoch that a read found. After a rise of the epoch, which means that changes were lost, existing
   * feeds may be ahead of the database. So later subscribers get new feeds.
   */
  observeEpoch(epoch: LogEpoch): void {
    const previousEpoch = this.#epoch;
    // The epoch is the same. Or this read began before the epoch was raised, and another read has found the new epoch.
    if (previousEpoch !== null && epoch <= previousEpoch) return;
    this.#epoch = epoch;
    if (previousEpoch === null) return;
    for (const feed of this.#feeds.values()) feed.invalidateCache();
    this.#feeds.clear();
    this.onNewEpoch();
  }

  /** Returns a recorder, which collects the conversations of all notifications until `stopRecording`. */
  startRecording(): ChangeRecorder {
    const recorder = new ChangeRecorder();
    this.#recorders.add(recorder);
    return recorder;
  }

  stopRecording(recorder: ChangeRecorder): void {
    this.#recorders.delete(recorder);
  }

  /**
   * The feed of a conversation. `head` is the newest rev that the calling code found in the database. `mayBeStale`:
   * there may be a newer change whose notification did not reach the feed. The calling code has to release the feed.
   */
  acquire(conversationId: ConversationId, head: Rev, mayBeStale: boolean): Feed {
    let feed = this.#feeds.get(conversationId);
    if (feed === undefined) {
      feed = new Feed(conversationId, head, this.reader);
      this.#feeds.set(conversationId, feed);
    }
    feed.refCount += 1;
    if (mayBeStale || head > feed.rev) feed.wake();
    return feed;
  }

  release(feed: Feed): void {
    feed.refCount -= 1;
    if (feed.refCount > 0) return;
    if (this.#feeds.get(feed.conversationId) === feed) this.#feeds.delete(feed.conversationId);
    feed.invalidateCache();
  }

  #recordChange(id: ConversationId): Feed | undefined {
    for (const recorder of this.#recorders) recorder.record(id);
    return this.#feeds.get(id);
  }

  /**
   * Finds the conversations with changes that their feeds have not read, because notifications were lost. Drops the
   * cached batches of these conversations, which may be outdated, and wakes the feeds.
   */
  async #poll(): Promise<void> {
    this.#shouldPollAgain = true;
    if (this.#isPolling) return;
    this.#isPolling = true;
    while (this.#shouldPollAgain && !this.reader.isStopped) {
      this.#shouldPollAgain = false;
      const current = [...this.#feeds.values()];
      for (let start = 0; start < current.length; start += FEEDS_PER_POLL_QUERY) {
        if (!(await this.#tryPollChunk(current.slice(start, start + FEEDS_PER_POLL_QUERY)))) break;
      }
    }
    this.#isPolling = false;
  }

  async #tryPollChunk(feeds: readonly Feed[]): Promise<boolean> {
    try {
      for (const { conversationId } of await this.#pool.run((sql) => listChangedHeads(sql, feeds))) {
        const feed = this.#feeds.get(conversationId);
        feed?.invalidateCache();
        feed?.wake();
      }
      return true;
    } catch (error) {
      logFailureByKind(this.#log, 'live: the newest changes could not be read', error);
      this.#shouldPollAgain = true;
      await this.reader.pause();
      return false;
    }
  }
}
