import type { Bus } from '../bus/bus.ts';
import type { Log } from '../log.ts';
import type { ConversationId, Rev } from '../model/ids.ts';
import { listMoved } from '../storage/following.ts';
import type { Pool } from '../storage/pool.ts';
import { ChangeReader } from './change-reader.ts';
import { Feed } from './feed.ts';
import type { LiveCounts } from './live-counts.ts';
import { logFailure } from './log-failure.ts';

const HEADS_AT_ONCE = 5_000;
/** A commit whose answer was lost, or whose node died, is told by nobody: what is followed is looked at so often. */
const LOOK_MS = 10_000;

/** What was said of conversations while somebody read which ones there are. */
export class Ear {
  readonly #heard = new Set<ConversationId>();
  #all = false;

  hear(conversationId: ConversationId | null): void {
    if (conversationId === null) this.#all = true;
    else this.#heard.add(conversationId);
  }

  has(conversationId: ConversationId): boolean {
    return this.#all || this.#heard.has(conversationId);
  }
}

interface FeedsOptions {
  readonly bus: Bus;
  readonly pool: Pool;
  readonly counts: LiveCounts;
  readonly log: Log;
  /** Milliseconds between two looks at all heads; 10 s by default. */
  readonly lookMs?: number;
}

/** The conversations that are followed on this node. Between `start` and `stop` it hears what changes in them. */
export class Feeds {
  readonly reader: ChangeReader;
  readonly #bus: Bus;
  readonly #pool: Pool;
  readonly #log: Log;
  readonly #lookMs: number;
  readonly #feeds = new Map<ConversationId, Feed>();
  readonly #ears = new Set<Ear>();
  #unsubscribe: () => void = () => {};
  #timer: NodeJS.Timeout | undefined;
  /** A look at all heads is under way, and whether another one has to follow. */
  #looking = false;
  #lookAgain = false;

  constructor(options: FeedsOptions) {
    this.#lookMs = options.lookMs ?? LOOK_MS;
    this.#bus = options.bus;
    this.#pool = options.pool;
    this.#log = options.log;
    this.reader = new ChangeReader(options.pool, options.counts, options.log);
  }

  get size(): number {
    return this.#feeds.size;
  }

  start(): void {
    this.#unsubscribe = this.#bus.subscribe({
      advanced: (heads) => {
        for (const id of heads.keys()) this.#heard(id)?.wake();
      },
      revised: (ids) => {
        for (const id of ids) {
          const feed = this.#heard(id);
          feed?.forget();
          feed?.wake();
        }
      },
      gap: () => {
        for (const ear of this.#ears) ear.hear(null);
        for (const feed of this.#feeds.values()) feed.forget();
        void this.#look();
      },
    });
    this.#timer = setInterval(() => void this.#look(), this.#lookMs);
  }

  stop(): void {
    this.#unsubscribe();
    clearInterval(this.#timer);
    this.reader.stop();
  }

  get(conversationId: ConversationId): Feed | null {
    return this.#feeds.get(conversationId) ?? null;
  }

  ids(): ConversationId[] {
    return [...this.#feeds.keys()];
  }

  /** Notes every word until it is let go. */
  listen(): Ear {
    const ear = new Ear();
    this.#ears.add(ear);
    return ear;
  }

  letGo(ear: Ear): void {
    this.#ears.delete(ear);
  }

  /**
   * The feed of a conversation whose newest change was `head` a moment ago; each user releases it. `isOld`: there may be
   * a newer one that nobody heard of.
   */
  acquire(conversationId: ConversationId, head: Rev, isOld: boolean): Feed {
    let feed = this.#feeds.get(conversationId);
    if (feed === undefined) {
      feed = new Feed(conversationId, head, this.reader);
      this.#feeds.set(conversationId, feed);
    }
    feed.users += 1;
    if (isOld || head > feed.rev) feed.wake();
    return feed;
  }

  release(feed: Feed): void {
    feed.users -= 1;
    if (feed.users > 0) return;
    this.#feeds.delete(feed.conversationId);
    feed.forget();
  }

  #heard(id: ConversationId): Feed | undefined {
    for (const ear of this.#ears) ear.hear(id);
    return this.#feeds.get(id);
  }

  /** Words may have been lost: asks which conversations have moved. What is remembered of these may be old as well. */
  async #look(): Promise<void> {
    this.#lookAgain = true;
    if (this.#looking) return;
    this.#looking = true;
    while (this.#lookAgain && !this.reader.stopped) {
      this.#lookAgain = false;
      const known = [...this.#feeds.values()];
      for (let start = 0; start < known.length; start += HEADS_AT_ONCE) {
        if (!(await this.#lookAt(known.slice(start, start + HEADS_AT_ONCE)))) break;
      }
    }
    this.#looking = false;
  }

  async #lookAt(feeds: readonly Feed[]): Promise<boolean> {
    try {
      for (const { conversationId } of await this.#pool.run((sql) => listMoved(sql, feeds))) {
        const feed = this.#feeds.get(conversationId);
        feed?.forget();
        feed?.wake();
      }
      return true;
    } catch (error) {
      logFailure(this.#log, 'live: the newest changes could not be read', error);
      this.#lookAgain = true;
      await this.reader.pause();
      return false;
    }
  }
}
