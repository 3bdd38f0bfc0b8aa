import { setTimeout as wait } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import type { Log } from '../log.ts';
import type { ConversationId, Rev } from '../model/ids.ts';
import { readChanges, type ChangePage } from '../storage/changes.ts';
import type { Pool } from '../storage/pool.ts';
import type { LiveCounts } from './live-counts.ts';
import { Stretch } from './stretch.ts';
import { logFailure } from './log-failure.ts';

const PAGE_ROWS = 500;
const PAGE_BYTES = 256 * 1024;
/** What is remembered of all conversations for those who come back. */
const REMEMBERED_BYTES = 32 * 1024 * 1024;
const REMEMBERED_MS = 60_000;
/** Of the pool's two connections one is left to the reads that many wait for. */
const CATCHING_UP = 1;
const FANNING_OUT = 2;
const RETRY_MS = 300;

/** Why there is no stretch: the conversation is gone, or the database is away. */
export type Missing = 'gone' | 'away';

interface Owner {
  forgot(stretch: Stretch): void;
}

/** Reads changes from the database, so many at a time, and keeps the frames of the last ones within a bound. */
export class ChangeReader {
  readonly counts: LiveCounts['reads'];
  readonly #pool: Pool;
  readonly #log: Log;
  readonly #fanOuts = new Turns(FANNING_OUT);
  readonly #catchUps = new Turns(CATCHING_UP);
  readonly #stop = new AbortController();
  readonly #remembered = new LRUCache<Stretch, Owner>({
    maxSize: REMEMBERED_BYTES,
    ttl: REMEMBERED_MS,
    sizeCalculation: (_, stretch) => stretch.bytes,
    dispose: (owner, stretch) => owner.forgot(stretch),
  });

  constructor(pool: Pool, counts: LiveCounts, log: Log) {
    this.#pool = pool;
    this.#log = log;
    this.counts = counts.reads;
  }

  /**
   * What is behind `rev` for everybody who follows: `stretch` is null when there is nothing, the whole null when the
   * conversation is gone or the server stops. While the database is away it is asked again and again.
   */
  async fanOut(conversationId: ConversationId, rev: Rev): Promise<{ stretch: Stretch | null; more: boolean } | null> {
    while (!this.#stop.signal.aborted) {
      try {
        this.counts.fan_out += 1;
        const page = await this.#fanOuts.take(() => this.#read(conversationId, rev));
        if (page === null) return null;
        return { stretch: page.rev > rev ? new Stretch(conversationId, rev, page) : null, more: page.more };
      } catch (error) {
        logFailure(this.#log, 'live: changes could not be read', error);
        await this.pause();
      }
    }
    return null;
  }

  /** The same for one client that lacks something, asked once. */
  async catchUp(conversationId: ConversationId, rev: Rev): Promise<Stretch | Missing> {
    this.counts.catch_up += 1;
    try {
      const page = await this.#catchUps.take(() => this.#read(conversationId, rev));
      return page === null ? 'gone' : new Stretch(conversationId, rev, page);
    } catch (error) {
      logFailure(this.#log, 'live: changes could not be read', error);
      return 'away';
    }
  }

  /** Waits, by default until it is worth asking the database again; no longer when the server stops. */
  async pause(ms = RETRY_MS): Promise<void> {
    try {
      await wait(ms, undefined, { signal: this.#stop.signal });
    } catch (error) {
      if (!this.#stop.signal.aborted) throw error;
    }
  }

  remember(stretch: Stretch, owner: Owner): void {
    if (stretch.bytes > REMEMBERED_BYTES) owner.forgot(stretch);
    else this.#remembered.set(stretch, owner);
  }

  forget(stretch: Stretch): void {
    this.#remembered.delete(stretch);
  }

  /** Drops what nobody came for in time. */
  tidy(): void {
    this.#remembered.purgeStale();
  }

  get stopped(): boolean {
    return this.#stop.signal.aborted;
  }

  stop(): void {
    this.#stop.abort();
    this.#remembered.clear();
  }

  #read(conversationId: ConversationId, afterRev: Rev): Promise<ChangePage | null> {
    return this.#pool.run((sql) =>
      readChanges(sql, { conversationId, afterRev, limit: PAGE_ROWS, maxBytes: PAGE_BYTES }),
    );
  }
}

/** So many at a time, the others in the order in which they came. They are bounded by the connections there are. */
class Turns {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(free: number) {
    this.#free = free;
  }

  async take<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#free += 1;
      else next();
    }
  }
}
