import type { ConversationId, Rev } from '../model/ids.ts';
import {
  MAX_SUBSCRIBED_CONVERSATIONS,
  type SubscriptionStartPoints,
  type SubscribedConversation,
} from '../operations/core/caller.ts';
import type { HeadForSubscriptions, MembershipWithRevs } from '../storage/groups/conversation-heads.ts';
import type { Feed, Follower } from './feed.ts';
import type { FeedRegistry } from './feed-registry.ts';
import { joinedNotification, leftNotification } from './frames.ts';
import type { SendableSession } from './sendable-session.ts';
import type { ChangeBatch } from './change-batch.ts';

/** One conversation that a session follows. */
class Subscription implements Follower {
  readonly feed: Feed;
  rev: Rev;
  /** True: the membership is being checked, and nothing is sent meanwhile. */
  isAwaitingMembershipCheck = false;
  isUnsubscribed = false;
  readonly #owner: SessionSubscriptions;

  constructor(owner: SessionSubscriptions, feed: Feed, rev: Rev) {
    this.#owner = owner;
    this.feed = feed;
    this.rev = rev;
  }

  get session(): SendableSession {
    return this.#owner.session;
  }

  deliver(batch: ChangeBatch): void {
    this.#owner.deliver(this, batch);
  }
}

/**
 * The conversations that one session follows. Subscriptions that lack changes catch up one after the other, as fast as
 * the client reads. A subscription that has everything is attached to its feed in the same tick, which leaves no room
 * for a gap or a repeat.
 */
export class SessionSubscriptions {
  readonly session: SendableSession;
  readonly #feeds: FeedRegistry;
  readonly #subscriptions = new Map<ConversationId, Subscription>();
  /** The subscriptions that lack changes; null until the first subscription lacks some. */
  #catchUpQueue: Set<Subscription> | null = null;
  /** Conversations whose membership changed before the session started following; null: it has started. */
  #membershipChangesBeforeStart: Set<ConversationId> | null = new Set();
  #isCatchingUp = false;

  constructor(session: SendableSession, feeds: FeedRegistry) {
    this.session = session;
    this.#feeds = feeds;
  }

  /**
   * Reads the conversations to follow with `list`, and returns the rev after which each is followed. Nothing is sent
   * before `startFollowingTakingChangedMemberships`.
   */
  async load(
    { since, default: start }: SubscriptionStartPoints,
    list: () => Promise<readonly HeadForSubscriptions[]>,
  ): Promise<readonly SubscribedConversation[]> {
    const recorder = this.#feeds.startRecording();
    try {
      const heads = await list();
      if (!this.session.isOpen) return [];
      return heads.map(({ conversationId, rev: head, firstSeq, epochRev }) => {
        const defaultRev = start === 'now' ? head : (0 as Rev);
        const rev = Math.min(since.get(conversationId) ?? defaultRev, head) as Rev;
        const feed = this.#feeds.acquire(conversationId, head, recorder.mayHaveChanged(conversationId));
        this.#subscriptions.set(conversationId, new Subscription(this, feed, rev));
        return { conversationId, rev, firstSeq, epochRev };
      });
    } finally {
      this.#feeds.stopRecording(recorder);
    }
  }

  /**
   * Starts sending. Returns the conversations whose membership changed before the start: the caller has to recheck
   * them.
   */
  startFollowingTakingChangedMemberships(): ReadonlySet<ConversationId> {
    const membershipChangesBeforeStart = this.#membershipChangesBeforeStart ?? new Set();
    this.#membershipChangesBeforeStart = null;
    for (const id of membershipChangesBeforeStart) this.suspend(id);
    for (const subscription of this.#subscriptions.values()) this.#resume(subscription);
    return membershipChangesBeforeStart;
  }

  /** Sends nothing of the conversation until `applyMembership`, since the account's membership has changed. */
  suspend(conversationId: ConversationId): void {
    if (this.#membershipChangesBeforeStart !== null) {
      this.#membershipChangesBeforeStart.add(conversationId);
      return;
    }
    const subscription = this.#subscriptions.get(conversationId);
    if (subscription === undefined) return;
    subscription.isAwaitingMembershipCheck = true;
    subscription.feed.attached.delete(subscription);
  }

  /** Applies the account's current membership. `membership` is null if the account is not a member. */
  applyMembership(conversationId: ConversationId, membership: MembershipWithRevs | null): void {
    // The session has not started following: its start returns the conversation for a recheck.
    if (this.#membershipChangesBeforeStart !== null) return;
    const subscription = this.#subscriptions.get(conversationId);
    if (membership === null) {
      if (subscription === undefined) return;
      this.#remove(subscription);
      this.session.send(leftNotification(conversationId));
    } else if (subscription === undefined) {
      if (!this.isFull) this.#addJoined(membership);
    } else {
      subscription.isAwaitingMembershipCheck = false;
      this.#resume(subscription);
    }
  }

  /** True: the session follows the maximum number of conversations, and leaves out the account's others. */
  get isFull(): boolean {
    return this.#subscriptions.size >= MAX_SUBSCRIBED_CONVERSATIONS;
  }

  follows(conversationId: ConversationId): boolean {
    return this.#subscriptions.has(conversationId);
  }

  get conversations(): Iterable<ConversationId> {
    return this.#subscriptions.keys();
  }

  stop(): void {
    for (const subscription of this.#subscriptions.values()) this.#remove(subscription);
  }

  /** Sends the changes of a batch that the subscription lacks. */
  deliver(subscription: Subscription, batch: ChangeBatch): void {
    if (batch.upToRev <= subscription.rev) return;
    const changesToSkip = batch.countUpTo(subscription.rev);
    subscription.rev = batch.upToRev;
    if (changesToSkip < batch.changeCount)
      this.session.sendEncoded(batch.framesFor(this.session.accountId), changesToSkip);
  }

  /**
   * Follows a conversation that the account joined: from its join notice or, if there is none, from the current head.
   */
  #addJoined({ conversationId, rev: head, joinNoticeRev }: MembershipWithRevs): void {
    const rev = (joinNoticeRev === null ? head : joinNoticeRev - 1) as Rev;
    const feed = this.#feeds.acquire(conversationId, head, true);
    const subscription = new Subscription(this, feed, rev);
    this.#subscriptions.set(conversationId, subscription);
    this.session.send(joinedNotification(conversationId, rev));
    this.#resume(subscription);
  }

  #remove(subscription: Subscription): void {
    subscription.isUnsubscribed = true;
    subscription.feed.attached.delete(subscription);
    this.#subscriptions.delete(subscription.feed.conversationId);
    this.#catchUpQueue?.delete(subscription);
    this.#feeds.release(subscription.feed);
  }

  #resume(subscription: Subscription): void {
    if (subscription.isAwaitingMembershipCheck || !this.session.isOpen) return;
    if (subscription.rev >= subscription.feed.rev && !this.session.connection.isFull) {
      subscription.feed.attached.add(subscription);
      return;
    }
    this.#catchUpQueue ??= new Set();
    this.#catchUpQueue.add(subscription);
    if (!this.#isCatchingUp) void this.#catchUpAll();
  }

  async #catchUpAll(): Promise<void> {
    this.#isCatchingUp = true;
    const { connection } = this.session;
    while (this.session.isOpen) {
      // Conversations catch up in turns, so that one long history does not hold up the others.
      const [subscription] = this.#catchUpQueue ?? [];
      if (subscription === undefined) break;
      this.#catchUpQueue!.delete(subscription);
      if (connection.isFull) await connection.drained();
      if (!maySend(subscription) || !this.session.isOpen) continue;
      if (subscription.rev >= subscription.feed.rev && !connection.isFull) subscription.feed.attached.add(subscription);
      else await this.#sendOneCatchUpBatch(subscription);
    }
    this.#isCatchingUp = false;
  }

  async #sendOneCatchUpBatch(subscription: Subscription): Promise<void> {
    const batch = await subscription.feed.changesAfter(subscription.rev);
    if (!this.session.isOpen || subscription.isUnsubscribed) return;
    if (batch === 'gone') {
      this.applyMembership(subscription.feed.conversationId, null);
      return;
    }
    if (batch === 'away' || batch.upToRev <= subscription.rev) await this.#feeds.reader.pause();
    else if (!subscription.isAwaitingMembershipCheck) this.deliver(subscription, batch);
    if (maySend(subscription) && this.session.isOpen) this.#catchUpQueue!.add(subscription);
  }
}

/** Whether changes may be sent. A subscription that awaits a membership check is resumed by the result of the check. */
function maySend({ isAwaitingMembershipCheck, isUnsubscribed }: Subscription): boolean {
  return !isAwaitingMembershipCheck && !isUnsubscribed;
}
