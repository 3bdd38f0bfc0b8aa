import type { ConversationId } from '../../model/ids.ts';
import type { AlertWrite } from './alerts.ts';
import type { Post, PostResult } from './write-posts.ts';

interface IntakeQueueLimits {
  readonly maxUnansweredPosts: number;
  readonly maxUnansweredBytes: number;
  readonly maxFlushPosts: number;
  readonly maxFlushBytes: number;
  readonly maxQueueWaitMs: number;
}

interface PostSubmission {
  readonly post: Post;
  readonly resolve: (posted: PostResult) => void;
  readonly reject: (error: Error) => void;
}

/**
 * A post that waits for its flush, or that a flush writes. `deadlineMs` is when its wait ends, in ms of the monotonic
 * clock.
 */
export interface QueuedPost extends PostSubmission {
  readonly bytes: number;
  readonly deadlineMs: number;
}

/** The size that is counted for a post besides its strings: ids, hashes, the promise. */
const POST_OVERHEAD_BYTES = 400;
/** The size that is counted for an attached file: its id, and its place in arrays. */
const ATTACHMENT_OVERHEAD_BYTES = 100;
/** The size that is counted for one sender's alert besides its fingerprint, including its JSON. */
const SENDER_ALERT_OVERHEAD_BYTES = 200;

/**
 * The posts that wait for a flush, first in, first out. The posts of each locked conversation wait in a separate line,
 * in their own order. A post counts against the bounds until it is answered.
 */
export class IntakeQueue {
  readonly #bounds: IntakeQueueLimits;
  readonly #blockedPostsByConversation = new Map<ConversationId, QueuedPost[]>();
  #waiting: QueuedPost[] = [];
  #unansweredCount = 0;
  #unansweredBytes = 0;

  constructor(bounds: IntakeQueueLimits) {
    this.#bounds = bounds;
  }

  get unansweredCount(): number {
    return this.#unansweredCount;
  }

  /** The estimated memory of the posts that are not answered yet. */
  get unansweredBytes(): number {
    return this.#unansweredBytes;
  }

  /** The number of waiting posts whose conversation is locked. */
  get blockedPostCount(): number {
    let count = 0;
    for (const blockedPosts of this.#blockedPostsByConversation.values()) count += blockedPosts.length;
    return count;
  }

  /** True if posts wait whose conversation is not locked. */
  get hasWaiting(): boolean {
    return this.#waiting.length > 0;
  }

  get hasBlockedPosts(): boolean {
    return this.#blockedPostsByConversation.size > 0;
  }

  /** Adds a post to the queue. Returns false if the queue is full: then it has not taken the post. */
  push(submission: PostSubmission): boolean {
    const bytes = sizeOf(submission.post);
    if (
      this.#unansweredCount >= this.#bounds.maxUnansweredPosts ||
      this.#unansweredBytes + bytes > this.#bounds.maxUnansweredBytes
    )
      return false;
    const entry: QueuedPost = { ...submission, bytes, deadlineMs: performance.now() + this.#bounds.maxQueueWaitMs };
    this.#unansweredCount += 1;
    this.#unansweredBytes += bytes;
    // A post follows the other posts of its conversation, whether these are blocked or not.
    const blocked = this.#blockedPostsByConversation.get(submission.post.conversationId);
    if (blocked === undefined) this.#waiting.push(entry);
    else blocked.push(entry);
    return true;
  }

  /**
   * Takes the oldest posts: at most `maxPosts`, and at most the bytes that one flush may hold, but at least one if any
   * waits.
   */
  take(maxPosts = this.#bounds.maxFlushPosts): QueuedPost[] {
    let bytes = 0;
    let count = 0;
    for (const entry of this.#waiting) {
      if (count > 0 && (count >= maxPosts || bytes + entry.bytes > this.#bounds.maxFlushBytes)) break;
      bytes += entry.bytes;
      count += 1;
    }
    return this.#waiting.splice(0, count);
  }

  /** Puts posts back before all others: they were taken for a flush, but are known to be unwritten. */
  requeueFirst(entries: readonly QueuedPost[]): void {
    this.#waiting.unshift(...entries);
  }

  /**
   * Puts posts that were taken into the separate lines of their locked conversations. The posts of these conversations
   * that still wait follow them.
   */
  block(entries: readonly QueuedPost[]): void {
    const ids = new Set(entries.map((entry) => entry.post.conversationId));
    const behind = this.#waiting.filter((entry) => ids.has(entry.post.conversationId));
    this.#waiting = this.#waiting.filter((entry) => !ids.has(entry.post.conversationId));
    for (const entry of [...entries, ...behind]) {
      const blockedPosts = this.#blockedPostsByConversation.get(entry.post.conversationId) ?? [];
      blockedPosts.push(entry);
      this.#blockedPostsByConversation.set(entry.post.conversationId, blockedPosts);
    }
  }

  blockedConversations(): ConversationId[] {
    return [...this.#blockedPostsByConversation.keys()];
  }

  /** Puts the blocked posts of these conversations back into the queue, before all others: they have waited longest. */
  release(ids: readonly ConversationId[]): void {
    const entries = ids.flatMap((id) => this.#blockedPostsByConversation.get(id) ?? []);
    for (const id of ids) this.#blockedPostsByConversation.delete(id);
    this.requeueFirst(entries);
  }

  answer(entry: QueuedPost, posted: PostResult): void {
    this.#forget(entry);
    entry.resolve(posted);
  }

  reject(entry: QueuedPost, error: Error): void {
    this.#forget(entry);
    entry.reject(error);
  }

  /**
   * Rejects posts that waited too long, and returns their number. It runs before every flush, so it creates the error
   * only when needed.
   */
  rejectExpired(makeError: () => Error): number {
    const now = performance.now();
    // The first waiting post is the one with the earliest deadline, or nearly so after a release of blocked posts.
    if (this.#blockedPostsByConversation.size === 0 && (this.#waiting[0]?.deadlineMs ?? Infinity) >= now) return 0;
    return this.#rejectWhere((entry) => entry.deadlineMs < now, makeError());
  }

  /** Rejects all waiting posts; posts that a flush has taken are not in the queue. */
  rejectAllQueued(error: Error): void {
    this.#rejectWhere(() => true, error);
  }

  #rejectWhere(test: (entry: QueuedPost) => boolean, error: Error): number {
    const rejected: QueuedPost[] = [];
    const keep = (entry: QueuedPost): boolean => {
      if (!test(entry)) return true;
      rejected.push(entry);
      return false;
    };
    this.#waiting = this.#waiting.filter(keep);
    for (const [id, line] of this.#blockedPostsByConversation) {
      const remaining = line.filter(keep);
      if (remaining.length === 0) this.#blockedPostsByConversation.delete(id);
      else this.#blockedPostsByConversation.set(id, remaining);
    }
    for (const entry of rejected) this.reject(entry, error);
    return rejected.length;
  }

  #forget(entry: QueuedPost): void {
    this.#unansweredCount -= 1;
    this.#unansweredBytes -= entry.bytes;
  }
}

function sizeOf({ text, cardsJson, label, iconUrl, key, clientId, attachments, alert, expectation }: Post): number {
  let bytes = POST_OVERHEAD_BYTES + attachments.length * ATTACHMENT_OVERHEAD_BYTES;
  for (const part of [text, cardsJson, label, iconUrl, key, clientId ?? null])
    if (part !== null) bytes += Buffer.byteLength(part);
  if (expectation !== undefined) bytes += Buffer.byteLength(expectation.key);
  return alert === undefined ? bytes : bytes + sizeOfAlert(alert);
}

function sizeOfAlert({ source, key, editedText, editedCardsJson, state }: AlertWrite): number {
  let bytes = 0;
  for (const part of [source, key, editedText, editedCardsJson]) if (part !== null) bytes += Buffer.byteLength(part);
  for (const { fingerprint } of state?.senderAlerts ?? [])
    bytes += SENDER_ALERT_OVERHEAD_BYTES + Buffer.byteLength(fingerprint);
  return bytes;
}
