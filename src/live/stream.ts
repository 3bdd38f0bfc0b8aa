import type { ConversationId, Rev } from '../model/ids.ts';
import { MAX_FOLLOWED, type FollowRequest, type Followed } from '../operations/caller.ts';
import type { ConversationHead, FoundMembership } from '../storage/following.ts';
import type { Feed, Follower } from './feed.ts';
import type { Feeds } from './feeds.ts';
import { joinedText, leftText } from './frames.ts';
import type { StreamSession } from './stream-session.ts';
import type { Stretch } from './stretch.ts';

/** What a session gets of one conversation. */
class Subscription implements Follower {
  readonly feed: Feed;
  rev: Rev;
  /** Whether it may go on is being asked: nothing is sent meanwhile. */
  isHeld = false;
  isOver = false;
  readonly #stream: Stream;

  constructor(stream: Stream, feed: Feed, rev: Rev) {
    this.#stream = stream;
    this.feed = feed;
    this.rev = rev;
  }

  get session(): StreamSession {
    return this.#stream.session;
  }

  take(stretch: Stretch): void {
    this.#stream.give(this, stretch);
  }
}

/**
 * The conversations that one session follows. Those that it lacks changes of are brought up one after the other, as fast
 * as the client reads; one that has everything is attached to its feed in the tick in which that is so, which leaves no
 * room for a gap or a repeat.
 */
export class Stream {
  readonly session: StreamSession;
  readonly #feeds: Feeds;
  readonly #subscriptions = new Map<ConversationId, Subscription>();
  /** Null until something lacks. */
  #behind: Set<Subscription> | null = null;
  /** Memberships that were changed before the stream began; null: it has begun. */
  #missed: Set<ConversationId> | null = new Set();
  #isRunning = false;

  constructor(session: StreamSession, feeds: Feeds) {
    this.session = session;
    this.#feeds = feeds;
  }

  /** Reads what there is to follow, by `list`, and says where each begins. Nothing is sent before `begin`. */
  async prepare(
    { known, others }: FollowRequest,
    list: () => Promise<readonly ConversationHead[]>,
  ): Promise<readonly Followed[]> {
    const ear = this.#feeds.listen();
    try {
      const heads = await list();
      if (!this.session.isOpen) return [];
      return heads.map(({ conversationId, rev: head }) => {
        const unknown = others === 'now' ? head : (0 as Rev);
        const rev = Math.min(known.get(conversationId) ?? unknown, head) as Rev;
        const feed = this.#feeds.acquire(conversationId, head, ear.has(conversationId));
        this.#subscriptions.set(conversationId, new Subscription(this, feed, rev));
        return { conversationId, rev };
      });
    } finally {
      this.#feeds.letGo(ear);
    }
  }

  /** Begins, and returns where the account's membership was changed meanwhile: whoever knows says what it is. */
  begin(): ReadonlySet<ConversationId> {
    const missed = this.#missed ?? new Set();
    this.#missed = null;
    for (const id of missed) this.hold(id);
    for (const subscription of this.#subscriptions.values()) this.#goOn(subscription);
    return missed;
  }

  /** The account's membership was changed: nothing more of the conversation until `settle` has said to what. */
  hold(conversationId: ConversationId): void {
    if (this.#missed !== null) {
      this.#missed.add(conversationId);
      return;
    }
    const subscription = this.#subscriptions.get(conversationId);
    if (subscription === undefined) return;
    subscription.isHeld = true;
    subscription.feed.attached.delete(subscription);
  }

  /** What the membership is now; null: there is none. */
  settle(conversationId: ConversationId, found: FoundMembership | null): void {
    // It is still being listed, and asked for when that is done.
    if (this.#missed !== null) return;
    const subscription = this.#subscriptions.get(conversationId);
    if (found === null) {
      if (subscription === undefined) return;
      this.#drop(subscription);
      this.session.send(leftText(conversationId));
    } else if (subscription === undefined) {
      if (!this.isFull) this.#join(found);
    } else {
      subscription.isHeld = false;
      this.#goOn(subscription);
    }
  }

  /** It follows as many as it may: what the account is in beside these is left out. */
  get isFull(): boolean {
    return this.#subscriptions.size >= MAX_FOLLOWED;
  }

  follows(conversationId: ConversationId): boolean {
    return this.#subscriptions.has(conversationId);
  }

  get conversations(): Iterable<ConversationId> {
    return this.#subscriptions.keys();
  }

  stop(): void {
    for (const subscription of this.#subscriptions.values()) this.#drop(subscription);
  }

  /** Sends what the subscription does not have of a stretch. */
  give(subscription: Subscription, stretch: Stretch): void {
    if (stretch.to <= subscription.rev) return;
    const behind = stretch.countUpTo(subscription.rev);
    subscription.rev = stretch.to;
    if (behind < stretch.frames.count) this.session.sendPrepared(stretch.frames, behind);
  }

  /** With the change that made the account a member as the first one. */
  #join({ conversationId, rev: head, joinedRev }: FoundMembership): void {
    const rev = (joinedRev === null ? head : joinedRev - 1) as Rev;
    const feed = this.#feeds.acquire(conversationId, head, true);
    const subscription = new Subscription(this, feed, rev);
    this.#subscriptions.set(conversationId, subscription);
    this.session.send(joinedText(conversationId, rev));
    this.#goOn(subscription);
  }

  #drop(subscription: Subscription): void {
    subscription.isOver = true;
    subscription.feed.attached.delete(subscription);
    this.#subscriptions.delete(subscription.feed.conversationId);
    this.#behind?.delete(subscription);
    this.#feeds.release(subscription.feed);
  }

  #goOn(subscription: Subscription): void {
    if (subscription.isHeld || !this.session.isOpen) return;
    if (subscription.rev >= subscription.feed.rev && !this.session.connection.isFull) {
      subscription.feed.attached.add(subscription);
      return;
    }
    this.#behind ??= new Set();
    this.#behind.add(subscription);
    if (!this.#isRunning) void this.#bringUp();
  }

  async #bringUp(): Promise<void> {
    this.#isRunning = true;
    const { connection } = this.session;
    while (this.session.isOpen) {
      // In turns, so that one long history does not hold up the others.
      const [subscription] = this.#behind ?? [];
      if (subscription === undefined) break;
      this.#behind!.delete(subscription);
      if (connection.isFull) await connection.drained();
      if (!canGoOn(subscription) || !this.session.isOpen) continue;
      if (subscription.rev >= subscription.feed.rev && !connection.isFull) subscription.feed.attached.add(subscription);
      else await this.#bringOn(subscription);
    }
    this.#isRunning = false;
  }

  async #bringOn(subscription: Subscription): Promise<void> {
    const stretch = await subscription.feed.after(subscription.rev);
    if (!this.session.isOpen || subscription.isOver) return;
    if (stretch === 'gone') {
      this.settle(subscription.feed.conversationId, null);
      return;
    }
    if (stretch === 'away' || stretch.to <= subscription.rev) await this.#feeds.reader.pause();
    else if (!subscription.isHeld) this.give(subscription, stretch);
    if (canGoOn(subscription) && this.session.isOpen) this.#behind!.add(subscription);
  }
}

/** Held ones go on when it is known whether they may. */
function canGoOn({ isHeld, isOver }: Subscription): boolean {
  return !isHeld && !isOver;
}
