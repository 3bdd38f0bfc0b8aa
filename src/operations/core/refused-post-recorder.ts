import { createHash } from 'node:crypto';
import { formats } from '../../callers/formats.ts';
import type { Log } from '../../log.ts';
import type { ConversationId } from '../../model/ids.ts';
import type { Pool } from '../../storage/db/pool.ts';
import {
  addRefusedPosts,
  MAX_REFUSED_POSTS_PER_GROUP,
  type NewRefusedPosts,
  type RefusalReason,
} from '../../storage/groups/refused-posts.ts';

const WRITE_INTERVAL_MS = 1_000;
const WRITE_TIMEOUT_MS = 2_000;
/** The most groups with refused posts that are not written yet. Refused posts of further groups are only counted. */
const MAX_PENDING_GROUPS = 1_000;
/** At most this many groups are written by one statement, each with up to `MAX_REFUSED_POSTS_PER_GROUP` rows. */
const GROUPS_PER_STATEMENT = 100;
const MAX_USER_AGENT_LENGTH = 100;
const MAX_SENTENCE_LENGTH = 300;
/** The label in the metrics for a body of which no format was recognised. */
const NO_FORMAT = 'none';

/** A refused post, as the code that refused it reports it. */
interface RefusedPost extends RefusalReason {
  readonly conversationId: ConversationId;
}

/** The refused posts of one reason that are not written yet. Their times are on the monotonic clock. */
interface PendingPosts extends RefusalReason {
  posts: number;
  firstAtMs: number;
  lastAtMs: number;
}

type PendingByReason = Map<string, PendingPosts>;

interface RecorderOptions {
  readonly pool: Pick<Pool, 'run'>;
  readonly log: Log;
}

/**
 * Stores refused posts, which the owners of a group can see. `record` only counts in memory. A second later the counts
 * are written, so that a burst of refused posts costs one write a second. If a write fails, its counts wait for the
 * next write, as far as the bounds allow.
 */
export class RefusedPostRecorder {
  /**
   * `byFormat` counts refused posts; it has every format from the start. `dropped`: refused posts that are not stored,
   * since too many groups had some.
   */
  readonly counts: { readonly byFormat: Record<string, number>; dropped: number };
  readonly #options: RecorderOptions;
  #pendingByGroup = new Map<ConversationId, PendingByReason>();
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> | null = null;
  #isStopped = false;
  #isFailing = false;

  constructor(options: RecorderOptions) {
    this.#options = options;
    const names = [...formats.map(({ name }) => name), NO_FORMAT];
    this.counts = { byFormat: Object.fromEntries(names.map((name) => [name, 0])), dropped: 0 };
  }

  /** Counts a refused post; does not throw, and does not wait. `sentence` must not quote the body. */
  record({ conversationId, userAgent, format, code, sentence }: RefusedPost): void {
    this.counts.byFormat[format ?? NO_FORMAT]! += 1;
    const now = performance.now();
    this.#addPending(conversationId, {
      userAgent: printableUserAgent(userAgent),
      format,
      code,
      sentence: sentence.slice(0, MAX_SENTENCE_LENGTH),
      posts: 1,
      firstAtMs: now,
      lastAtMs: now,
    });
    this.#schedule();
  }

  /** Writes the counts that are not written yet. If that fails, logs how many groups are affected. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    await this.#writing;
    await this.#write();
    const groups = this.#pendingByGroup.size;
    if (groups > 0) this.#options.log.warn('the newest refused posts of some groups are not stored', { groups });
  }

  #schedule(): void {
    if (this.#isStopped || this.#timer !== undefined || this.#writing !== null || this.#pendingByGroup.size === 0)
      return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#writing = this.#write().finally(() => {
        this.#writing = null;
        this.#schedule();
      });
    }, WRITE_INTERVAL_MS).unref();
  }

  async #write(): Promise<void> {
    const groups = [...this.#pendingByGroup];
    this.#pendingByGroup = new Map();
    for (let start = 0; start < groups.length; start += GROUPS_PER_STATEMENT) {
      const page = groups.slice(start, start + GROUPS_PER_STATEMENT);
      try {
        await this.#options.pool.run((sql) => addRefusedPosts(sql, toNewRefusedPosts(page)), WRITE_TIMEOUT_MS);
        this.#isFailing = false;
      } catch (error) {
        // The write is repeated even if its outcome is unknown: posts may be counted twice, but none is missing.
        this.#putBack(groups.slice(start));
        if (!this.#isFailing) this.#options.log.info('refused posts cannot be stored, repeating', { error });
        this.#isFailing = true;
        return;
      }
    }
  }

  #putBack(groups: readonly (readonly [ConversationId, PendingByReason])[]): void {
    for (const [conversationId, pending] of groups)
      for (const posts of pending.values()) this.#addPending(conversationId, posts);
  }

  #addPending(conversationId: ConversationId, added: PendingPosts): void {
    let pending = this.#pendingByGroup.get(conversationId);
    if (pending === undefined) {
      if (this.#pendingByGroup.size >= MAX_PENDING_GROUPS) {
        this.counts.dropped += added.posts;
        return;
      }
      pending = new Map();
      this.#pendingByGroup.set(conversationId, pending);
    }
    const key = keyOf(added);
    const pendingOfSameReason = pending.get(key);
    if (pendingOfSameReason === undefined) {
      pending.set(key, added);
      if (pending.size > MAX_REFUSED_POSTS_PER_GROUP) deleteOldest(pending);
      return;
    }
    const newest = added.lastAtMs >= pendingOfSameReason.lastAtMs ? added : pendingOfSameReason;
    pending.set(key, {
      ...newest,
      posts: pendingOfSameReason.posts + added.posts,
      firstAtMs: Math.min(pendingOfSameReason.firstAtMs, added.firstAtMs),
    });
  }
}

/**
 * Drops the reason that occurred least recently. The database would drop it too, since the group has so many newer
 * ones.
 */
function deleteOldest(pending: PendingByReason): void {
  let oldestKey: string | null = null;
  let oldestAtMs = Infinity;
  for (const [key, { lastAtMs }] of pending) {
    if (lastAtMs >= oldestAtMs) continue;
    oldestKey = key;
    oldestAtMs = lastAtMs;
  }
  if (oldestKey !== null) pending.delete(oldestKey);
}

/**
 * Returns the same key for posts that were refused for the same reason. Numbers in the sentence are ignored: a broken
 * template fails at another column each time.
 */
function keyOf({ userAgent, format, code, sentence }: RefusalReason): string {
  return JSON.stringify([userAgent, format, code, sentence.replace(/\d+/g, '0')]);
}

/**
 * The User-Agent header without characters that a terminal or a page could interpret, since a stranger may have written
 * it. Null: nothing is left.
 */
function printableUserAgent(userAgent: string | null): string | null {
  const printable = (userAgent ?? '')
    .replace(/[^\x20-\x7e]/g, '')
    .slice(0, MAX_USER_AGENT_LENGTH)
    .trim();
  return printable === '' ? null : printable;
}

function toNewRefusedPosts(
  groups: readonly (readonly [ConversationId, PendingByReason])[],
): readonly NewRefusedPosts[] {
  const now = performance.now();
  return groups.flatMap(([conversationId, pending]) =>
    [...pending].map(([key, { firstAtMs, lastAtMs, ...rest }]) => ({
      ...rest,
      conversationId,
      fingerprint: createHash('sha256').update(key).digest('hex'),
      firstAgeMicros: Math.round((now - firstAtMs) * 1_000),
      lastAgeMicros: Math.round((now - lastAtMs) * 1_000),
    })),
  );
}
