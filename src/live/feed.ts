import type { ConversationId, Rev } from '../model/ids.ts';
import type { ChangeReader, ReadFailure } from './change-reader.ts';
import type { SendableSession } from './sendable-session.ts';
import type { ChangeBatch } from './change-batch.ts';

/** How far below what one client lacks a read begins, so that others who lack a little more can share it. */
const READ_ALIGNMENT_REVS = 64;

/**
 * After giving something to all followers a feed rests for so many times as long as that took, so that what is posted
 * meanwhile goes out in one write for each instead of many; at most for the second. Few followers take no time at all.
 */
const BROADCAST_COOLDOWN_FACTOR = 3;
const MAX_BROADCAST_COOLDOWN_MS = 40;

/** Somebody whom a feed gives each change, in order. */
export interface Follower {
  /** It has everything up to here. */
  readonly rev: Rev;
  readonly session: SendableSession;
  deliver(batch: ChangeBatch): void;
}

/**
 * The changes of one conversation that is followed on this node. What a word brought is read once, made into frames
 * once, and given to all followers in one tick; who lacks more comes for it, and what several lack is read once as well.
 */
export class Feed {
  readonly conversationId: ConversationId;
  /** What is attached has everything up to here. */
  rev: Rev;
  /** Followers and those that are on their way to becoming some: without any the feed is dropped. */
  refCount = 0;
  readonly attached = new Set<Follower>();
  readonly #reader: ChangeReader;
  #cachedBatches: ChangeBatch[] = [];
  readonly #pendingReadsByRev = new Map<Rev, Promise<ChangeBatch | ReadFailure>>();
  #cacheGeneration = 0;
  /** A word came since the last read began. */
  #hasUnreadChanges = false;
  #isReading = false;
  #cooldownUntilMs = 0;

  constructor(conversationId: ConversationId, rev: Rev, reader: ChangeReader) {
    this.conversationId = conversationId;
    this.rev = rev;
    this.#reader = reader;
  }

  /** Somebody said that there is more. */
  wake(): void {
    this.#hasUnreadChanges = true;
    if (!this.#isReading) void this.#readLoop();
  }

  /** Something old was changed: what is remembered may hold a text that is deleted by now. */
  invalidateCache(): void {
    this.#cacheGeneration += 1;
    for (const batch of this.#cachedBatches) this.#reader.evict(batch);
    this.#cachedBatches = [];
  }

  /** A stretch is remembered no longer. */
  onEvicted(batch: ChangeBatch): void {
    this.#cachedBatches = this.#cachedBatches.filter((each) => each !== batch);
  }

  /** The changes behind `rev`, or the first of them. */
  async changesAfter(rev: Rev): Promise<ChangeBatch | ReadFailure> {
    const hit = this.#cachedBatches.find((each) => each.afterRev <= rev && rev < each.upToRev);
    if (hit !== undefined) {
      this.#reader.counts.shared += 1;
      return hit;
    }
    const alignedRev = (rev - (rev % READ_ALIGNMENT_REVS)) as Rev;
    const shared = await this.#readPage(alignedRev);
    if (typeof shared === 'string' || shared.upToRev > rev || alignedRev === rev) return shared;
    return this.#readPage(rev);
  }

  #readPage(from: Rev): Promise<ChangeBatch | ReadFailure> {
    const pending = this.#pendingReadsByRev.get(from);
    if (pending !== undefined) {
      this.#reader.counts.shared += 1;
      return pending;
    }
    const cacheGeneration = this.#cacheGeneration;
    const read = this.#reader.readForCatchUp(this.conversationId, from).then((batch) => {
      this.#pendingReadsByRev.delete(from);
      if (typeof batch !== 'string' && cacheGeneration === this.#cacheGeneration) this.#cache(batch);
      return batch;
    });
    this.#pendingReadsByRev.set(from, read);
    return read;
  }

  /** One read at a time; words that come meanwhile cause one more. */
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
      this.#hasUnreadChanges ||= page.more;
    }
    this.#isReading = false;
  }

  #broadcast(batch: ChangeBatch): void {
    this.rev = batch.upToRev;
    const startedMs = performance.now();
    // One that is closed by what it is given leaves the set, which a running loop takes.
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
