import type { ConversationId, Rev } from '../model/ids.ts';
import type { ChangeReader, ReadFailure } from './change-reader.ts';
import type { SendableSession } from './sendable-session.ts';
import type { ChangeBatch } from './change-batch.ts';

/**
 * A catch-up read begins up to this many revs below the client's rev, so that clients that lack a little more can share
 * the read.
 */
const READ_ALIGNMENT_REVS = 64;

/**
 * After a broadcast a feed reads nothing for this multiple of the broadcast's duration, but at most for
 * MAX_BROADCAST_COOLDOWN_MS. Changes posted meanwhile then go out in one write for each follower instead of many. For
 * few followers the pause is negligible.
 */
const BROADCAST_COOLDOWN_FACTOR = 3;
const MAX_BROADCAST_COOLDOWN_MS = 40;

/** A subscriber that gets each change from a feed, in order. */
export interface Follower {
  /** The follower has all changes up to this rev. */
  readonly rev: Rev;
  readonly session: SendableSession;
  deliver(batch: ChangeBatch): void;
}

/**
 * The changes of one conversation that clients on this node follow. After a notification the feed reads changes once,
 * encodes them once, and gives them to all followers in one tick. A follower that lacks earlier changes calls
 * `changesAfter`. Followers that lack the same changes share one read.
 */
export class Feed {
  readonly conversationId: ConversationId;
  /** Attached followers have all changes up to this rev. */
  rev: Rev;
  /** The number of attached followers and of those that catch up. The registry drops the feed when none is left. */
  refCount = 0;
  readonly attached = new Set<Follower>();
  readonly #reader: ChangeReader;
  #cachedBatches: ChangeBatch[] = [];
  readonly #pendingReadsByRev = new Map<Rev, Promise<ChangeBatch | ReadFailure>>();
  #cacheGeneration = 0;
  /** A notification arrived since the last read began. */
  #hasUnreadChanges = false;
  #isReading = false;
  #cooldownUntilMs = 0;

  constructor(conversationId: ConversationId, rev: Rev, reader: ChangeReader) {
    this.conversationId = conversationId;
    this.rev = rev;
    this.#reader = reader;
  }

  /**
   * Starts a read. To be called when a notification, or a head with a greater rev than the feed's, announces more
   * changes.
   */
  wake(): void {
    this.#hasUnreadChanges = true;
    if (!this.#isReading) void this.#readLoop();
  }

  /**
   * Drops all cached batches. To be called when an older message changes: the cache may hold a text that was deleted.
   */
  invalidateCache(): void {
    this.#cacheGeneration += 1;
    for (const batch of this.#cachedBatches) this.#reader.evict(batch);
    this.#cachedBatches = [];
  }

  /** Forgets a batch that the reader has evicted from its cache. */
  onEvicted(batch: ChangeBatch): void {
    this.#cachedBatches = this.#cachedBatches.filter((each) => each !== batch);
  }

  /** A batch with all changes after `rev` or the first of them; it may also hold earlier changes. */
  async changesAfter(rev: Rev): Promise<ChangeBatch | ReadFailure> {
    const hit = this.#cachedBatches.find((each) => each.afterRev <= rev && rev < each.upToRev);
    if (hit !== undefined) {
      this.#reader.counts.shared += 1;
      return hit;
    }
    const alignedRev = (rev - (rev % READ_ALIGNMENT_REVS)) as Rev;
    const sharedBatch = await this.#readPage(alignedRev);
    if (typeof sharedBatch === 'string' || sharedBatch.upToRev > rev || alignedRev === rev) return sharedBatch;
    return this.#readPage(rev);
  }

  #readPage(afterRev: Rev): Promise<ChangeBatch | ReadFailure> {
    const pending = this.#pendingReadsByRev.get(afterRev);
    if (pending !== undefined) {
      this.#reader.counts.shared += 1;
      return pending;
    }
    const cacheGeneration = this.#cacheGeneration;
    const read = this.#reader.readForCatchUp(this.conversationId, afterRev).then((batch) => {
      this.#pendingReadsByRev.delete(afterRev);
      if (typeof batch !== 'string' && cacheGeneration === this.#cacheGeneration) this.#cache(batch);
      return batch;
    });
    this.#pendingReadsByRev.set(afterRev, read);
    return read;
  }

  /** Runs one read at a time. Notifications that arrive during a read cause one more read. */
  async #readLoop(): Promise<void> {
    this.#isReading = true;
    while (this.#hasUnreadChanges && this.refCount > 0) {
      const cooldownMs = this.#cooldownUntilMs - performance.now();
      if (cooldownMs > 1) await this.#reader.pause(cooldownMs);
      this.#hasUnreadChanges = false;
      const cacheGeneration = this.#cacheGeneration;
      const page = await this.#reader.readForFanOut(this.conversationId, this.rev);
      if (page === null) break;
      if (page.batch !== null) {
        if (cacheGeneration === this.#cacheGeneration) this.#cache(page.batch);
        this.#broadcast(page.batch);
      }
      this.#hasUnreadChanges ||= page.hasMore;
    }
    this.#isReading = false;
  }

  #broadcast(batch: ChangeBatch): void {
    this.rev = batch.upToRev;
    const startedMs = performance.now();
    // A follower that this delivery closes leaves the set, which the running iteration permits.
    for (const follower of this.attached) follower.deliver(batch);
    const endedMs = performance.now();
    this.#cooldownUntilMs =
      endedMs + Math.min(MAX_BROADCAST_COOLDOWN_MS, BROADCAST_COOLDOWN_FACTOR * (endedMs - startedMs));
  }

  #cache(batch: ChangeBatch): void {
    if (this.refCount === 0) return;
    this.#cachedBatches.push(batch);
    this.#reader.cache(batch, this);
  }
}
