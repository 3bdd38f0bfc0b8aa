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

/** The intake queue (the posts that wait to be written) is full: it has not taken the post. */
export class IntakeFullError extends Error {
  override readonly name = 'IntakeFullError';
}

/** The database refuses this post for its content; a retry does not help. */
export class PoisonMessageError extends Error {
  override readonly name = 'PoisonMessageError';
}

/** Another post changed the alert after this post's change of the alert was decided: nothing was written. */
export class AlertConflictError extends Error {
  override readonly name = 'AlertConflictError';
}

export interface MessageLogOptions {
  readonly maxUnansweredPosts: number;
  readonly maxUnansweredBytes: number;
  readonly maxFlushPosts: number;
  readonly maxFlushBytes: number;
  /** The limit on a post's wait until its flush begins, even while the database is unavailable; then it is rejected. */
  readonly maxQueueWaitMs: number;
  /**
   * Called after a commit with the conversations that got messages, and the newest seq of each. It also gets the
   * conversation of a repeated post, because the first write of that post may have had an unknown outcome. Must not
   * throw.
   */
  readonly onCommitted: (advanced: ReadonlyMap<ConversationId, Seq>) => void;
}

/** Counters since the start of the process, for metrics. */
interface MessageLogCounts {
  commits: number;
  posted: number;
  /** Posts whose idempotency key was stored already, so that nothing was written for them. */
  repeats: number;
  /** Flush statements that failed, whether or not their posts were written in the end. */
  failedCommits: number;
  /** Posts that were rejected because the database was unavailable for longer than they may wait. */
  outageRefusals: number;
  /** The number of posts in each commit. */
  readonly batchPosts: Histogram;
  readonly commitS: Histogram;
}

const BATCH_SIZE_BUCKETS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000];
/**
 * The codes of a serialization failure and a deadlock: PostgreSQL has rolled the statement back, and a retry may
 * succeed.
 */
const RETRYABLE_SQLSTATES = new Set(['40001', '40P01']);
const LOCK_NOT_AVAILABLE = '55P03';
const MAX_WRITE_TRIES = 5;
const BLOCKED_PROBE_INTERVAL_MS = 50;
const OUTAGE_EXPIRY_INTERVAL_MS = 50;

/**
 * Writes messages by group commit. Posts of all callers wait in one bounded queue. One flush at a time takes the oldest
 * posts and commits them together. Two concurrent flushes were slower than one (measured), and they reorder the posts
 * of one session.
 *
 * If the outcome of a write is unknown, the log does not repeat the write, and the post's caller gets an error. A post
 * that was not yet sent to the database waits while the database is unavailable, but not longer than `maxQueueWaitMs`.
 * So callers do not notice a planned switchover. If another transaction holds a conversation locked, the posts of that
 * conversation wait in a separate line, so that they do not block the others.
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
  #outageExpiryTimer: NodeJS.Timeout | undefined;
  #blockedProbeTimer: NodeJS.Timeout | null = null;
  #nextLockProbeAtMs = 0;
  #stopped = false;

  constructor(pool: Pool, options: MessageLogOptions) {
    this.#pool = pool;
    this.#options = options;
    this.#queue = new IntakeQueue(options);
  }

  /** The number of posts that are not answered yet: they wait, or a flush writes them. */
  get depth(): number {
    return this.#queue.unansweredCount;
  }

  /** The bytes of the posts that are not answered yet. */
  get depthBytes(): number {
    return this.#queue.unansweredBytes;
  }

  /** True from a failure of the database until it has taken a write again. */
  get isSuspended(): boolean {
    return this.#outage !== null;
  }

  /** The number of waiting posts whose conversation another transaction holds locked. */
  get blockedPosts(): number {
    return this.#queue.blockedPostCount;
  }

  /**
   * Resolves with the outcome of the post after the commit. Rejects with
   * - CommitUnknownError: the post may have been written,
   * - IntakeFullError, DatabaseUnavailableError, PoisonMessageError or AlertConflictError: it was not written.
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
      this.#scheduleFlush();
    });
  }

  /**
   * Refuses new posts from now on, and writes the waiting ones. Those that a lock or an outage holds back are rejected.
   */
  async stop(): Promise<void> {
    this.#stopped = true;
    while (this.#flushing !== null) await this.#flushing;
    this.#outage?.stop();
    clearInterval(this.#outageExpiryTimer);
    if (this.#blockedProbeTimer !== null) clearTimeout(this.#blockedProbeTimer);
    this.#queue.rejectAllQueued(new DatabaseUnavailableError('the server is stopping'));
  }

  #scheduleFlush(): void {
    if (this.#flushing !== null || this.#outage !== null || this.#queue.unansweredCount === 0) return;
    this.#flushing = this.#flushLoop().finally(() => {
      this.#flushing = null;
      this.#answerCommitted();
      // A caller that just got its answer may have posted again after the last check of the flush loop.
      if (this.#queue.hasWaiting) this.#scheduleFlush();
      else this.#scheduleBlockedProbe();
    });
  }

  async #flushLoop(): Promise<void> {
    // Waits one turn of the event loop: posts that arrive in the same turn share the first flush.
    await new Promise(setImmediate);
    while (this.#outage === null) {
      this.#queue.rejectExpired(() => new DatabaseUnavailableError('the post waited too long for its turn'));
      // Checks in each turn of the loop which conversations are still locked, and not only when the queue is empty.
      // Otherwise a busy log would never release blocked posts.
      if (this.#queue.hasBlockedPosts && performance.now() >= this.#nextLockProbeAtMs) await this.#releaseUnlocked();
      if (this.#outage !== null) break;
      const batch = this.#queue.take();
      if (batch.length === 0) break;
      const writing = this.#write(batch, 1);
      // Answers the callers of the previous flush only now, while PostgreSQL already works on this flush.
      setImmediate(() => this.#answerCommitted());
      await writing;
    }
    this.#answerCommitted();
  }

  /** Starts a timer that checks the locks of blocked posts, because no other post may arrive and trigger a flush. */
  #scheduleBlockedProbe(): void {
    if (!this.#queue.hasBlockedPosts || this.#blockedProbeTimer !== null || this.#stopped) return;
    this.#blockedProbeTimer = setTimeout(() => {
      this.#blockedProbeTimer = null;
      this.#scheduleFlush();
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
      this.#nextLockProbeAtMs = performance.now() + BLOCKED_PROBE_INTERVAL_MS;
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
    // Announces the commit before it answers the callers: a caller that has its answer can rely on the notification.
    if (advanced.size > 0) this.#options.onCommitted(advanced);
  }

  /** Answers the callers of committed posts. */
  #answerCommitted(): void {
    for (const { entry, answer } of this.#unanswered.splice(0)) {
      if (answer.outcome === 'conflict') this.#queue.reject(entry, alertConflictError());
      else this.#queue.answer(entry, answer);
    }
  }

  /**
   * Handles a failed flush. None of its posts is written, except perhaps after a lost connection or a time-out: then
   * the outcome is unknown.
   */
  async #onWriteFailed(batch: readonly QueuedPost[], tries: number, error: unknown): Promise<void> {
    const state = sqlState(error);
    if (state === LOCK_NOT_AVAILABLE) return this.#blockLockedRewriteOthers(batch, tries, error);
    const isRetryable =
      (state !== null && RETRYABLE_SQLSTATES.has(state)) ||
      violatesUnique(error, 'idempotency_key_pkey') ||
      violatesUnique(error, 'alert_pkey');
    if (isRetryable && tries < MAX_WRITE_TRIES) return this.#write(batch, tries + 1);
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
    // The second half waits in the queue meanwhile. If the first write blocks a conversation, the second half's posts
    // of that conversation are blocked behind those of the first half, so that their order holds.
    this.#queue.requeueFirst(batch.slice(middle));
    await this.#write(batch.slice(0, middle), 1);
    if (this.#outage !== null) return;
    const rest = this.#queue.take(batch.length - middle);
    if (rest.length > 0) await this.#write(rest, 1);
  }

  async #blockLockedRewriteOthers(batch: readonly QueuedPost[], tries: number, error: unknown): Promise<void> {
    const ids = [...new Set(batch.map((entry) => entry.post.conversationId))];
    let locked: Set<ConversationId>;
    let lockedFileIds = new Set<string>();
    try {
      locked = await this.#pool.run((sql) => findLockedConversations(sql, ids));
      const fileIds = batch.flatMap((entry) => entry.post.attachments);
      if (fileIds.length > 0) lockedFileIds = await this.#pool.run((sql) => findLockedFiles(sql, fileIds));
    } catch (cause) {
      // The lock time-out has rolled the flush back, so none of its posts is written.
      this.#suspendAfterFailedFlush(batch, cause);
      return;
    }
    const unblocked = batch.filter((entry) => !locked.has(entry.post.conversationId));
    const hasLockedFile = ({ post }: QueuedPost): boolean => post.attachments.some((id) => lockedFileIds.has(id));
    // Rejects posts whose files are locked. No transaction locks a file for long, so their callers retry them. In a
    // separate line, these posts would be overtaken by posts that were sent later.
    for (const entry of unblocked.filter(hasLockedFile)) this.#queue.reject(entry, notWrittenError(error));
    const free = unblocked.filter((entry) => !hasLockedFile(entry));
    this.#queue.block(batch.filter((entry) => locked.has(entry.post.conversationId)));
    this.#nextLockProbeAtMs = performance.now() + BLOCKED_PROBE_INTERVAL_MS;
    if (free.length === 0) return;
    // Lock time-outs that recur although no conversation is locked show that another transaction holds a whole table.
    if (tries >= MAX_WRITE_TRIES) this.#suspendAfterFailedFlush(free, error);
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

  /**
   * Starts no flush until the database takes a write again. Once the outage has lasted `holdMs`, new posts are refused
   * at once.
   */
  #suspend(cause: unknown, holdMs = this.#options.maxQueueWaitMs): void {
    if (this.#outage !== null) return;
    const outage = new Outage(this.#pool, { cause, holdMs });
    this.#outage = outage;
    this.#outageExpiryTimer = setInterval(() => {
      this.counts.outageRefusals += this.#queue.rejectExpired(() => outage.error);
    }, OUTAGE_EXPIRY_INTERVAL_MS).unref();
    void outage.end.then(() => {
      clearInterval(this.#outageExpiryTimer);
      if (this.#stopped) return;
      this.#outage = null;
      this.#scheduleFlush();
    });
  }
}

/** Whether this error means that the database is unavailable, or that its connection was lost during a request. */
function isOutage(error: unknown): boolean {
  return error instanceof DatabaseUnavailableError || error instanceof CommitUnknownError;
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error('the database failed');
}

function alertConflictError(): Error {
  return new AlertConflictError('another post changed the alert since it was read: read it and decide again');
}

/** The error for posts whose flush PostgreSQL has rolled back, and for posts that waited behind a refused flush. */
function notWrittenError(error: unknown): Error {
  return new DatabaseUnavailableError('the database refused to write', { cause: error });
}
