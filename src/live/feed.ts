import type { ConversationId, Rev } from '../model/ids.ts';
import type { ChangeReader, Missing } from './change-reader.ts';
import type { StreamSession } from './stream-session.ts';
import type { Stretch } from './stretch.ts';

/** How far below what one client lacks a read begins, so that others who lack a little more can share it. */
const ALIGNMENT = 64;

/**
 * After giving something to all followers a feed rests for so many times as long as that took, so that what is posted
 * meanwhile goes out in one write for each instead of many; at most for the second. Few followers take no time at all.
 */
const REST = 3;
const MAX_REST_MS = 40;

/** Somebody whom a feed gives each change, in order. */
export interface Follower {
  /** It has everything up to here. */
  readonly rev: Rev;
  readonly session: StreamSession;
  take(stretch: Stretch): void;
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
  users = 0;
  readonly attached = new Set<Follower>();
  readonly #reader: ChangeReader;
  #recent: Stretch[] = [];
  readonly #reads = new Map<Rev, Promise<Stretch | Missing>>();
  #generation = 0;
  /** A word came since the last read began. */
  #isBehind = false;
  #isReading = false;
  #restUntilMs = 0;

  constructor(conversationId: ConversationId, rev: Rev, reader: ChangeReader) {
    this.conversationId = conversationId;
    this.rev = rev;
    this.#reader = reader;
  }

  /** Somebody said that there is more. */
  wake(): void {
    this.#isBehind = true;
    if (!this.#isReading) void this.#readOn();
  }

  /** Something old was changed: what is remembered may hold a text that is deleted by now. */
  forget(): void {
    this.#generation += 1;
    for (const stretch of this.#recent) this.#reader.forget(stretch);
    this.#recent = [];
  }

  /** A stretch is remembered no longer. */
  forgot(stretch: Stretch): void {
    this.#recent = this.#recent.filter((each) => each !== stretch);
  }

  /** The changes behind `rev`, or the first of them. */
  async after(rev: Rev): Promise<Stretch | Missing> {
    const remembered = this.#recent.find((each) => each.from <= rev && rev < each.to);
    if (remembered !== undefined) {
      this.#reader.counts.shared += 1;
      return remembered;
    }
    const aligned = (rev - (rev % ALIGNMENT)) as Rev;
    const shared = await this.#page(aligned);
    if (typeof shared === 'string' || shared.to > rev || aligned === rev) return shared;
    return this.#page(rev);
  }

  #page(from: Rev): Promise<Stretch | Missing> {
    const underWay = this.#reads.get(from);
    if (underWay !== undefined) {
      this.#reader.counts.shared += 1;
      return underWay;
    }
    const generation = this.#generation;
    const read = this.#reader.catchUp(this.conversationId, from).then((stretch) => {
      this.#reads.delete(from);
      if (typeof stretch !== 'string' && generation === this.#generation) this.#remember(stretch);
      return stretch;
    });
    this.#reads.set(from, read);
    return read;
  }

  /** One read at a time; words that come meanwhile cause one more. */
  async #readOn(): Promise<void> {
    this.#isReading = true;
    while (this.#isBehind && this.users > 0) {
      const restMs = this.#restUntilMs - performance.now();
      if (restMs > 1) await this.#reader.pause(restMs);
      this.#isBehind = false;
      const generation = this.#generation;
      const page = await this.#reader.fanOut(this.conversationId, this.rev);
      if (page === null) break;
      if (page.stretch !== null) {
        if (generation === this.#generation) this.#remember(page.stretch);
        this.#spread(page.stretch);
      }
      this.#isBehind ||= page.more;
    }
    this.#isReading = false;
  }

  #spread(stretch: Stretch): void {
    this.rev = stretch.to;
    const startedMs = performance.now();
    // One that is closed by what it is given leaves the set, which a running loop takes.
    for (const follower of this.attached) follower.take(stretch);
    const endedMs = performance.now();
    this.#restUntilMs = endedMs + Math.min(MAX_REST_MS, REST * (endedMs - startedMs));
  }

  #remember(stretch: Stretch): void {
    if (this.users === 0) return;
    this.#recent.push(stretch);
    this.#reader.remember(stretch, this);
  }
}
