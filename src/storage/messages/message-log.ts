import { DURATION_BOUNDS_S, Histogram } from '../../histogram.ts';
import type { ConversationId, Seq } from '../../model/ids.ts';
import {
  DatabaseUnavailableError,
  CommitUnknownError,
  isConnectionFatal,
  sqlState,
  violatesUnique,
  wasRolledBackByShutdown,
} from '../db/database-error.ts';
import { Outage } from './outage.ts';
import { IntakeQueue, type QueuedPost } from './intake-queue.ts';
import { findLockedFiles } from './message-log-files.ts';
import { findLockedConversations, writePosts, type FlushResult, type Post, type PostResult } from './write-posts.ts';
import type { Pool } from '../db/pool.ts';

/** The intake queue is at its bound: the post was not taken. */
export class IntakeFullError extends Error {
  override readonly name = 'IntakeFullError';
}

/** The database refuses this post for its content; a retry does not help. */
export class PoisonMessageError extends Error {
  override readonly name = 'PoisonMessageError';
}

/** The alert changed since the post's change was decided: nothing was written. */
export class AlertConflictError extends Error {
  override readonly name = 'AlertConflictError';
}

export interface MessageLogOptions {
  readonly maxUnansweredPosts: number;
  readonly maxUnansweredBytes: number;
  readonly maxFlushPosts: number;
  readonly maxFlushBytes: number;
  /** How long a post may wait for its flush to begin, and for an unavailable database to become available. */
  readonly maxQueueWaitMs: number;
  /**
   * Called after each commit with the conversations that advanced, and their newest seqs. It also gets the conversation
   * of a repeated post, whose first write may have had an unknown outcome. Must not throw.
   */
  readonly onCommitted: (advanced: ReadonlyMap<ConversationId, Seq>) => void;
}

/** Counters since the start, for metrics. */
interface MessageLogCounts {
  commits: number;
  posted: number;
  /** Repeats: posts whose key was stored already, so that nothing was written for them. */
  repeats: number;
  /** Failed statements, whatever the outcome of their posts. */
  failedCommits: number;
  /** Posts that were refused since the database was unavailable for longer than they may wait. */
  outageRefusals: number;
  /** The number of posts in each commit. */
  readonly batchPosts: Histogram;
  readonly commitS: Histogram;
}

const BATCH_SIZE_BUCKETS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000];
/** Serialization failure, deadlock: PostgreSQL rolled back and asks for a retry. */
const RETRYABLE_SQLSTATES = new Set(['40001', '40P01']);
const LOCK_NOT_AVAILABLE = '55P03';
const MAX_TRIES = 5;
const BLOCKED_PROBE_INTERVAL_MS = 50;
const OUTAGE_EXPIRY_INTERVAL_MS = 50;

/**
 * The writer of messages: group commit. Posts of all callers wait in one bounded queue; one flush at a time takes the
 * oldest and commits them together. Two flushes in flight were measured slower than one, and they reorder a session's
 * posts.
 *
 * The log never repeats the write of a post whose outcome is unknown: the caller gets an error. A post of which nothing
 * was sent waits while the database is unavailable, up to the limit for any post. So callers do not notice a planned
 * switchover. Posts of a conversation that another transaction holds locked wait in a separate line, so that one lock
 * does not block the others.
 */
export class MessageLog {
  readonly counts: MessageLogCounts = {
    commits: 0,
    posted: 0,
    repeats: 0,
    failedCommits: 0,
    outageRefusals: 0,
    batchPosts: new Histogram(BATCH_SIZE_BUCKETS),
    commitS: new Histogram(DURATION_BOUNDS_S),
  };
  readonly #pool: Pool;
  readonly #options: MessageLogOptions;
  readonly #queue: IntakeQueue;
  /** Committed posts whose callers have no answer yet. */
  readonly #unanswered: { entry: QueuedPost; answer: FlushResult }[] = [];
  #flushing: Promise<void> | null = null;
  /** Null while the database takes writes, as far as this node knows. */
  #outage: Outage | null = null;
  #expiry: NodeJS.Timeout | undefined;
  #timer: NodeJS.Timeout | null = null;
  #nextConversationLockProbeMs = 0;
  #stopped = false;

  constructor(pool: Pool, options: MessageLogOptions) {
    this.#pool = pool;
    this.#options = options;
    this.#queue = new IntakeQueue(options);
  }

  /** Posts that wait or are being written. */
  get depth(): number {
    return this.#queue.size;
  }

  /** The bytes of the posts that wait or are being written. */
  get depthBytes(): number {
    return this.#queue.bytes;
  }

  /** True from a failure of the database until it has taken a write again. */
  get isSuspended(): boolean {
    return this.#outage !== null;
  }

  /** Posts whose conversation another transaction holds locked. */
  get blockedPosts(): number {
    return this.#queue.blockedPostCount;
  }

  /**
   * Resolves after the commit. Rejects with IntakeFullError or DatabaseUnavailableError (nothing was written),
   * CommitUnknownError (may have been written), PoisonMessageError, or AlertConflictError.
   */
  append(post: Post): Promise<PostResult> {
    if (this.#stopped) return Promise.reject(new DatabaseUnavailableError('the server is stopping'));
    if (this.#outage?.refusesPosts === true) {
      this.counts.outageRefusals += 1;
      return Promise.reject(this.#outage.error);
    }
    return new Promise((resolve, reject) => {
      if (!this.#queue.push({ post, resolve, reject })) {
        reject(new IntakeFullError('the intake queue is full'));
        return;
      }
      this.#schedule();
    });
  }

  /** Writes the waiting posts, then refuses more. */
  async stop(): Promise<void> {
    this.#stopped = true;
    while (this.#flushing !== null) await this.#flushing;
    this.#outage?.stop();
    clearInterval(this.#expiry);
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#queue.rejectAllQueued(new DatabaseUnavailableError('the server is stopping'));
  }

  #schedule(): void {
    if (this.#flushing !== null || this.#outage !== null || this.#queue.size === 0) return;
    this.#flushing = this.#flushLoop().finally(() => {
      this.#flushing = null;
      this.#answer();
      // A caller that just got its answer may have posted again after the last check of the loop.
      if (this.#queue.hasWaiting) this.#schedule();
      else this.#scheduleBlockedProbe();
    });
  }

  async #flushLoop(): Promise<void> {
    // Requests that were read in the same turn of the event loop share the first flush.
    await new Promise(setImmediate);
    while (this.#outage === null) {
      this.#queue.rejectExpired(() => new DatabaseUnavailableError('the post waited too long for its turn'));
      // Checks the locks in each turn of the loop, and not only when the queue is empty. Otherwise a busy log would
      // never release blocked posts.
      if (this.#queue.hasBlockedPosts && performance.now() >= this.#nextConversationLockProbeMs)
        await this.#releaseUnlocked();
      if (this.#outage !== null) break;
      const batch = this.#queue.take();
      if (batch.length === 0) break;
      const writing = this.#write(batch, 1);
      // The last flush's callers get their answers while PostgreSQL works on this flush, not before it starts.
      setImmediate(() => this.#answer());
      await writing;
    }
    this.#answer();
  }

  /** Starts a timer for blocked posts, in case no other post arrives that would trigger a flush. */
  #scheduleBlockedProbe(): void {
    if (!this.#queue.hasBlockedPosts || this.#timer !== null || this.#stopped) return;
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.#schedule();
    }, BLOCKED_PROBE_INTERVAL_MS);
  }

  async #releaseUnlocked(): Promise<void> {
    const blocked = this.#queue.blockedConversations();
    try {
      const locked = await this.#pool.run((sql) => findLockedConversations(sql, blocked));
      this.#queue.release(blocked.filter((id) => !locked.has(id)));
    } catch (error) {
      this.#suspendAfterFailedFlush([], error);
    } finally {
      this.#nextConversationLockProbeMs = performance.now() + BLOCKED_PROBE_INTERVAL_MS;
    }
  }

  async #write(batch: readonly QueuedPost[], tries: number): Promise<void> {
    let answers: FlushResult[];
    const startedAt = performance.now();
    try {
      answers = await this.#pool.run((sql) =>
        writePosts(
          sql,
          batch.map((entry) => entry.post),
        ),
      );
    } catch (error) {
      this.counts.failedCommits += 1;
      await this.#onWriteFailed(batch, tries, error);
      return;
    }
    this.counts.commitS.observe((performance.now() - startedAt) / 1_000);
    this.counts.batchPosts.observe(batch.length);
    this.#countAndAnnounceCommit(batch, answers);
  }

  #countAndAnnounceCommit(batch: readonly QueuedPost[], answers: readonly FlushResult[]): void {
    const advanced = new Map<ConversationId, Seq>();
    batch.forEach((entry, index) => {
      const answer = answers[index]!;
      if (answer.outcome === 'refused' || answer.outcome === 'conflict') return;
      const seq = answer.outcome === 'new' && answer.alert !== undefined ? answer.alert.postedSeq : answer.seq;
      if (answer.outcome === 'repeat') this.counts.repeats += 1;
      else if (seq !== null) this.counts.posted += 1;
      const { conversationId } = entry.post;
      if (seq !== null && seq > (advanced.get(conversationId) ?? 0)) advanced.set(conversationId, seq);
    });
    this.counts.commits += 1;
    batch.forEach((entry, index) => this.#unanswered.push({ entry, answer: answers[index]! }));
    // The notification goes out before the answers, so that a caller that has its answer can rely on it.
    if (advanced.size > 0) this.#options.onCommitted(advanced);
  }

  /** Answers the callers of committed posts. */
  #answer(): void {
    for (const { entry, answer } of this.#unanswered.splice(0)) {
      if (answer.outcome === 'conflict') this.#queue.reject(entry, alertConflictError());
      else this.#queue.answer(entry, answer);
    }
  }

  /** Each branch runs after a rollback, except the one for a lost connection, where the outcome is unknown. */
  async #onWriteFailed(batch: readonly QueuedPost[], tries: number, error: unknown): Promise<void> {
    const state = sqlState(error);
    if (state === LOCK_NOT_AVAILABLE) return this.#blockLockedRewriteOthers(batch, tries, error);
    const repeatable =
      (state !== null && RETRYABLE_SQLSTATES.has(state)) ||
      violatesUnique(error, 'idempotency_key_pkey') ||
      violatesUnique(error, 'alert_pkey');
    if (repeatable && tries < MAX_TRIES) return this.#write(batch, tries + 1);
    if (error instanceof DatabaseUnavailableError || wasRolledBackByShutdown(error)) {
      return this.#suspendAfterFailedFlush(batch, error);
    }
    if (isConnectionFatal(error) || state === null) {
      for (const entry of batch) this.#queue.reject(entry, asError(error));
      if (isOutage(error)) this.#suspend(error);
      return;
    }
    if (/^(22|23|54)/.test(state)) return this.#writeInHalves(batch, error);
    this.#suspendAfterFailedFlush(batch, error);
  }

  async #writeInHalves(batch: readonly QueuedPost[], error: unknown): Promise<void> {
    if (batch.length === 1) {
      this.#queue.reject(batch[0]!, new PoisonMessageError('the database refuses this message', { cause: error }));
      return;
    }
    const middle = Math.ceil(batch.length / 2);
    // The second half waits in the queue meanwhile. If the first half's posts of a conversation are blocked or
    // rejected, the second half's posts follow them, and their order holds.
    this.#queue.requeueFirst(batch.slice(middle));
    await this.#write(batch.slice(0, middle), 1);
    if (this.#outage !== null) return;
    const rest = this.#queue.take(batch.length - middle);
    if (rest.length > 0) await this.#write(rest, 1);
  }

  async #blockLockedRewriteOthers(batch: readonly QueuedPost[], tries: number, error: unknown): Promise<void> {
    const ids = [...new Set(batch.map((entry) => entry.post.conversationId))];
    let locked: Set<ConversationId>;
    let files = new Set<string>();
    try {
      locked = await this.#pool.run((sql) => findLockedConversations(sql, ids));
      const named = batch.flatMap((entry) => entry.post.attachments);
      if (named.length > 0) files = await this.#pool.run((sql) => findLockedFiles(sql, named));
    } catch (cause) {
      // The lock time-out has rolled the flush back, so none of its posts is written.
      this.#suspendAfterFailedFlush(batch, cause);
      return;
    }
    const unblocked = batch.filter((entry) => !locked.has(entry.post.conversationId));
    const isStuck = ({ post }: QueuedPost): boolean => post.attachments.some((id) => files.has(id));
    // No transaction locks a file for long, so the callers retry these posts. In a separate line, they would be
    // overtaken by posts that were sent later.
    for (const entry of unblocked.filter(isStuck)) this.#queue.reject(entry, notWrittenError(error));
    const free = unblocked.filter((entry) => !isStuck(entry));
    this.#queue.block(batch.filter((entry) => locked.has(entry.post.conversationId)));
    this.#nextConversationLockProbeMs = performance.now() + BLOCKED_PROBE_INTERVAL_MS;
    if (free.length === 0) return;
    // Repeated time-outs without a locked head show that another transaction holds a whole table.
    if (tries >= MAX_TRIES) this.#suspendAfterFailedFlush(free, error);
    else await this.#write(free, tries + 1);
  }

  /**
   * If the database is unavailable, unwritten posts wait for it. If PostgreSQL itself refused the flush (a full disk),
   * that state may last, so all waiting posts are rejected at once.
   */
  #suspendAfterFailedFlush(batch: readonly QueuedPost[], error: unknown): void {
    if (isOutage(error)) {
      this.#queue.requeueFirst(batch);
      this.#suspend(error);
      return;
    }
    const refusal = notWrittenError(error);
    for (const entry of batch) this.#queue.reject(entry, refusal);
    this.#queue.rejectAllQueued(refusal);
    this.#suspend(refusal, 0);
  }

  /** Writes nothing until the database takes a write again; posts may wait up to `holdMs` for it. */
  #suspend(cause: unknown, holdMs = this.#options.maxQueueWaitMs): void {
    if (this.#outage !== null) return;
    const outage = new Outage(this.#pool, { cause, holdMs });
    this.#outage = outage;
    this.#expiry = setInterval(() => {
      this.counts.outageRefusals += this.#queue.rejectExpired(() => outage.error);
    }, OUTAGE_EXPIRY_INTERVAL_MS).unref();
    void outage.end.then(() => {
      clearInterval(this.#expiry);
      if (this.#stopped) return;
      this.#outage = null;
      this.#schedule();
    });
  }
}

/** Whether the database is unavailable, or its connection was lost during a request. */
function isOutage(error: unknown): boolean {
  return error instanceof DatabaseUnavailableError || error instanceof CommitUnknownError;
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error('the database failed');
}

function alertConflictError(): Error {
  return new AlertConflictError('another post changed the alert since it was read: read it and decide again');
}

/** The error for posts that PostgreSQL has rolled back. */
function notWrittenError(error: unknown): Error {
  return new DatabaseUnavailableError('the database refused to write', { cause: error });
}
