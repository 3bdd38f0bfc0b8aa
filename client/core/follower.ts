import { ServerError } from './chat-error.ts';
import type { ChatSession } from './chat-session.ts';
import { decodeReceived, type Decoder } from './decode.ts';
import type { ChatListener } from './events.ts';
import type { Notification } from './rpc-client.ts';
import {
  decodeConversationChange,
  decodeChangePage,
  decodeSubscribeResult,
  decodeConversationJoined,
  decodeConversationLeft,
  type Change,
  type ChangePage,
  type SubscribeResult,
} from './shapes.ts';

/** The positions at which the follower begins, and the conversations that it follows. */
export interface FollowOptions {
  /** For each conversation, the rev of the last change that the client has. */
  readonly resumeRevByConversation: ReadonlyMap<number, number>;
  /**
   * The epoch of the server's log that each rev in `resumeRevByConversation` belongs to; 0 for conversations that are
   * not in the map.
   */
  readonly resumeEpochByConversation?: ReadonlyMap<number, number>;
  /** The beginning for conversations without a rev to resume from. `now`: changes from now on. `start`: all changes. */
  readonly startWithoutResumeRev: 'now' | 'start';
  /** The conversations to follow; null: all. */
  readonly onlyConversations: ReadonlySet<number> | null;
}

/**
 * The number of changes of a page in `conversations.sync`. Each page that arrives doubles this number. Each page that
 * fails divides it by four, because a large page never arrives whole over a connection that keeps breaking.
 */
const SYNC_PAGE_SIZES = { first: 32, max: 500 } as const;
const MAX_REMEMBERED_LEFT_CONVERSATIONS = 1_000;
/**
 * The maximum number of conversations that `live.subscribe` accepts. If there are more, the client names those with the
 * lowest numbers.
 */
const MAX_SUBSCRIBED_CONVERSATIONS = 20_000;
/**
 * An account that was added to a conversation while it was disconnected gets this many of the last changes. The server
 * does not tell the rev at which the account was added.
 */
const BACKFILL_CHANGES_WHEN_JOINED_AWAY = 200;

/**
 * Follows conversations over successive connections, and passes each change to the listener once and in order. It drops
 * changes that it has already handled. Where revs are missing, it fetches all changes of the gap from the server. Only
 * the server knows the reason: an edit moved a message to a newer rev, or a notification was lost.
 */
export class ConversationFollower {
  /** The rev of the last handled change of each conversation. */
  readonly #handledRevByConversation: Map<number, number>;
  /** By conversation, the log epoch that the rev of the last handled change belongs to. */
  readonly #epochByConversation = new Map<number, number>();
  /** The server's log epoch at the last subscription. */
  #subscribedEpoch = 0;
  /**
   * For each conversation that the account has left, the rev of the last handled change: the account may join again.
   */
  readonly #revByLeftConversation = new Map<number, number>();
  readonly #options: FollowOptions;
  readonly #listener: ChatListener;
  /** Conversations of which the client has not yet fetched all missing changes, as after a broken connection. */
  readonly #conversationsWithGap = new Set<number>();
  #hasFollowedBefore = false;
  #handledChangeCount = 0;
  #syncPageSize: number = SYNC_PAGE_SIZES.first;

  constructor(options: FollowOptions, listener: ChatListener) {
    this.#options = options;
    this.#listener = listener;
    const { onlyConversations: only, resumeEpochByConversation: epochs } = options;
    this.#handledRevByConversation = new Map(
      [...options.resumeRevByConversation].filter(([id]) => only === null || only.has(id)),
    );
    for (const id of this.#handledRevByConversation.keys()) this.#epochByConversation.set(id, epochs?.get(id) ?? 0);
  }

  /** By conversation, the rev of the last change that the listener has handled. */
  get handledRevByConversation(): ReadonlyMap<number, number> {
    return this.#handledRevByConversation;
  }

  /** By conversation, the log epoch that the rev of the last handled change belongs to. */
  get epochByConversation(): ReadonlyMap<number, number> {
    return this.#epochByConversation;
  }

  /** The number of changes that the listener has handled. */
  get handledChangeCount(): number {
    return this.#handledChangeCount;
  }

  /**
   * Subscribes on a new connection. Closes open gaps first: the start of a stream can be long, and answers after it
   * might never arrive over a connection that keeps breaking. Rejects as `call` does.
   */
  async closeGapsAndSubscribe(session: ChatSession): Promise<SubscribeResult> {
    for (const id of this.#conversationsWithGap)
      await this.#catchUp(session, id, this.#handledRevByConversation.get(id) ?? 0);
    const resumeRevs = Object.fromEntries(
      [...this.#handledRevByConversation].sort(([a], [b]) => a - b).slice(0, MAX_SUBSCRIBED_CONVERSATIONS),
    );
    const params = { since: resumeRevs, default: this.#options.startWithoutResumeRev };
    return session.call('live.subscribe', params, { decode: decodeSubscribeResult });
  }

  /** Compares the revs at which the stream begins with those of the last handled changes, and closes the gaps. */
  async reconcileWithSubscribed(session: ChatSession, subscribed: SubscribeResult): Promise<void> {
    const { conversations, complete } = subscribed;
    const isFresh = !this.#hasFollowedBefore && this.#options.resumeRevByConversation.size === 0;
    const selectedConversations = conversations.filter(({ id }) => this.#isSelected(id));
    const ids = new Set(selectedConversations.map(({ id }) => id));
    // An incomplete list does not show which conversations the account has left.
    if (complete)
      for (const id of this.#handledRevByConversation.keys()) if (!ids.has(id)) await this.#removeConversation(id);
    await this.#dropLostChanges(selectedConversations, subscribed);
    for (const { id, rev } of selectedConversations) {
      const handledRev = this.#handledRevByConversation.get(id);
      if (handledRev === undefined) await this.#addConversation(session, { id, rev }, isFresh);
      else if (handledRev > rev) await this.#rewind(id, rev);
      else if (handledRev < rev) await this.#catchUp(session, id, handledRev);
    }
    this.#hasFollowedBefore = true;
    await this.#listener({
      type: 'following',
      conversations: selectedConversations.length,
      isSubscribedToAll: complete,
    });
  }

  /**
   * Forgets handled changes that the server has lost since the last connection: those after `epoch_rev` if the log's
   * epoch rose once, otherwise all. It runs before any fetch, so that the next subscription repeats an interrupted
   * reconciliation.
   */
  async #dropLostChanges(
    conversations: SubscribeResult['conversations'],
    { epoch = 0, previous_epoch: previous = 0 }: SubscribeResult,
  ): Promise<void> {
    if (epoch !== this.#subscribedEpoch) this.#revByLeftConversation.clear();
    this.#subscribedEpoch = epoch;
    const epochRevById = new Map(conversations.map(({ id, epoch_rev: epochRev = 0 }) => [id, epochRev]));
    for (const [id, handledRev] of this.#handledRevByConversation) {
      const handledEpoch = this.#epochByConversation.get(id) ?? 0;
      if (handledEpoch === epoch) continue;
      // The answer does not tell which changes an unlisted conversation lost, so the follower forgets all its changes.
      const keptRev = handledEpoch === previous ? Math.min(handledRev, epochRevById.get(id) ?? 0) : 0;
      this.#epochByConversation.set(id, epoch);
      if (keptRev < handledRev) await this.#rewind(id, keptRev);
    }
  }

  /** Handles a notification of the server. The caller waits for the result before it passes the next notification. */
  handle(session: ChatSession, { method, params }: Notification): Promise<void> | void {
    if (method === 'conversation.change') return this.#onChange(session, params);
    if (method === 'conversation.joined') return this.#onJoined(session, params);
    if (method === 'conversation.left') {
      const { conversation } = decodeNotification(decodeConversationLeft, params);
      return this.#handledRevByConversation.has(conversation) ? this.#removeConversation(conversation) : undefined;
    }
    return this.#listener({ type: 'said', method, params });
  }

  #isSelected(conversation: number): boolean {
    return this.#options.onlyConversations?.has(conversation) ?? true;
  }

  #onChange(session: ChatSession, params: unknown): Promise<void> | void {
    const { conversation, ...change } = decodeNotification(decodeConversationChange, params);
    const handledRev = this.#handledRevByConversation.get(conversation);
    // Drops a change that the follower has handled already, and changes of a conversation that it does not follow.
    if (handledRev === undefined || change.rev <= handledRev) return undefined;
    if (change.rev === handledRev + 1) return this.#passToListener(conversation, change);
    return this.#catchUp(session, conversation, handledRev);
  }

  #passToListener(conversation: number, change: Change): Promise<void> | void {
    const done = this.#listener({ type: 'change', conversation, change });
    if (done === undefined) return this.#recordHandled(conversation, change.rev);
    return done.then(() => this.#recordHandled(conversation, change.rev));
  }

  /**
   * Called only after the listener has handled the change. If the listener fails, the next connection has to deliver
   * the change again.
   */
  #recordHandled(conversation: number, rev: number): void {
    this.#handledRevByConversation.set(conversation, rev);
    this.#handledChangeCount += 1;
  }

  /** Reads all changes after a rev, page by page, up to the newest change of the conversation. */
  async #catchUp(session: ChatSession, conversation: number, afterRev: number): Promise<void> {
    this.#conversationsWithGap.add(conversation);
    for (let handledRev = afterRev, hasMore = true; hasMore;) {
      const params = { conversation, after_rev: handledRev, limit: this.#syncPageSize };
      const page = await this.#fetchSyncPage(session, params);
      if (page === null) break;
      // The gap stays open: only the answer to the next subscription tells which changes this conversation lost.
      if ((page.epoch ?? 0) !== (this.#epochByConversation.get(conversation) ?? 0)) return;
      for (const change of page.changes) if (change.rev > handledRev) await this.#passToListener(conversation, change);
      hasMore = page.more && page.rev > handledRev;
      handledRev = Math.max(handledRev, page.rev);
      this.#handledRevByConversation.set(conversation, handledRev);
    }
    this.#conversationsWithGap.delete(conversation);
  }

  /** Resolves to null when the account is no longer in the conversation; the stream reports the departure, too. */
  async #fetchSyncPage(session: ChatSession, params: object): Promise<ChangePage | null> {
    try {
      const page = await session.call('conversations.sync', params, { decode: decodeChangePage });
      this.#syncPageSize = Math.min(SYNC_PAGE_SIZES.max, this.#syncPageSize * 2);
      return page;
    } catch (error) {
      this.#syncPageSize = Math.max(1, Math.floor(this.#syncPageSize / 4));
      if (error instanceof ServerError && error.code === 'not_found') return null;
      throw error;
    }
  }

  async #onJoined(session: ChatSession, params: unknown): Promise<void> {
    const { conversation, rev } = decodeNotification(decodeConversationJoined, params);
    if (!this.#isSelected(conversation)) return;
    const handledRev = this.#handledRevByConversation.get(conversation);
    if (handledRev === undefined) await this.#addConversation(session, { id: conversation, rev }, true);
    else if (handledRev < rev) await this.#catchUp(session, conversation, handledRev);
  }

  /**
   * Adds a conversation to follow. `isStreamComplete`: the stream contains all changes of the conversation that the
   * client wants.
   */
  async #addConversation(
    session: ChatSession,
    { id, rev }: { id: number; rev: number },
    isStreamComplete: boolean,
  ): Promise<void> {
    const wantedStartRev =
      isStreamComplete || this.#options.startWithoutResumeRev === 'start'
        ? rev
        : Math.max(0, rev - BACKFILL_CHANGES_WHEN_JOINED_AWAY);
    const startRev = Math.min(rev, Math.max(wantedStartRev, this.#revByLeftConversation.get(id) ?? 0));
    this.#revByLeftConversation.delete(id);
    this.#epochByConversation.set(id, this.#subscribedEpoch);
    this.#handledRevByConversation.set(id, startRev);
    if (this.#hasFollowedBefore || !isStreamComplete) await this.#listener({ type: 'joined', conversation: id });
    if (startRev < rev) await this.#catchUp(session, id, startRev);
  }

  async #removeConversation(conversation: number): Promise<void> {
    this.#revByLeftConversation.set(conversation, this.#handledRevByConversation.get(conversation) ?? 0);
    if (this.#revByLeftConversation.size > MAX_REMEMBERED_LEFT_CONVERSATIONS)
      this.#revByLeftConversation.delete(this.#revByLeftConversation.keys().next().value!);
    this.#handledRevByConversation.delete(conversation);
    this.#epochByConversation.delete(conversation);
    this.#conversationsWithGap.delete(conversation);
    await this.#listener({ type: 'left', conversation });
  }

  async #rewind(conversation: number, rev: number): Promise<void> {
    this.#handledRevByConversation.set(conversation, rev);
    await this.#listener({ type: 'reset', conversation, rev });
  }
}

function decodeNotification<Value>(decode: Decoder<Value>, params: unknown): Value {
  const errorSentence =
    'the server says something that this client does not know: use a client and a server of the same version';
  return decodeReceived(decode, params, errorSentence);
}
