import { ServerError } from './chat-error.ts';
import type { ChatSession } from './chat-session.ts';
import { decodeReceived, type Decoder } from './decode.ts';
import type { ChatListener } from './events.ts';
import type { Notification } from './rpc-client.ts';
import {
  decodeChanged,
  decodeChangePage,
  decodeFollowed,
  decodeJoined,
  decodeLeft,
  type Change,
  type Followed,
} from './shapes.ts';

/** Where to begin. */
export interface FollowOptions {
  /** Up to which change of which conversation everything is there already. */
  readonly known: ReadonlyMap<number, number>;
  /** In conversations that are not known: with what comes from now on, or with their first change. */
  readonly others: 'now' | 'start';
  /** Only these conversations are listened to; null: all. */
  readonly only: ReadonlySet<number> | null;
}

/**
 * Changes that are asked for at once: from few to many while they arrive, and fewer again when the connection broke
 * beneath them, since on a way that is cut all the time a large page would never arrive whole.
 */
const PAGES = { first: 32, max: 500 } as const;
const MAX_LEFT = 1_000;
/** Conversations that `live.subscribe` takes; it follows those with the lowest numbers. */
const MAX_KNOWN = 20_000;
/**
 * Somebody who was added to a conversation while the connection was away hears so many of its last changes, which has
 * in it what was written since; where it begins nobody says.
 */
const JOINED_MEANWHILE = 200;

/**
 * Turns what the server says on one connection after another into each change once and in order: what is there already
 * is dropped by its rev, and where revs are left out the server is asked for everything between, since an edited
 * message has moved to a newer rev, or something was lost, and only the server can tell which.
 */
export class Follower {
  /** Up to here each conversation was heard. */
  readonly #revs: Map<number, number>;
  /** The same for conversations that the account has left, should it come back into them. */
  readonly #left = new Map<number, number>();
  readonly #options: FollowOptions;
  readonly #listener: ChatListener;
  /** Conversations with a gap that was not closed before the connection broke. */
  readonly #open = new Set<number>();
  #hasFollowed = false;
  #heard = 0;
  #pageSize: number = PAGES.first;

  constructor(options: FollowOptions, listener: ChatListener) {
    this.#options = options;
    this.#listener = listener;
    const { only } = options;
    this.#revs = new Map([...options.known].filter(([id]) => only === null || only.has(id)));
  }

  /** By conversation, the last change that the listener was done with. */
  get revs(): ReadonlyMap<number, number> {
    return this.#revs;
  }

  /** Changes that the listener was done with. */
  get heard(): number {
    return this.#heard;
  }

  /**
   * Begins the stream on a new connection. Gaps that are open are closed before: behind the beginning of a stream, which
   * can be long, their answers might never come through on a way that is cut all the time. Rejects as `call` does.
   */
  async begin(session: ChatSession): Promise<Followed> {
    for (const id of this.#open) await this.#catchUp(session, id, this.#revs.get(id) ?? 0);
    const known = Object.fromEntries([...this.#revs].sort(([a], [b]) => a - b).slice(0, MAX_KNOWN));
    const params = { since: known, default: this.#options.others };
    return session.call('live.subscribe', params, { decode: decodeFollowed });
  }

  /** Compares where the stream begins with what is there, and closes what lies between. */
  async place(session: ChatSession, { conversations, complete }: Followed): Promise<void> {
    const isFresh = !this.#hasFollowed && this.#options.known.size === 0;
    const mine = conversations.filter(({ id }) => this.#isMine(id));
    const ids = new Set(mine.map(({ id }) => id));
    // Where not all are listed, one that is not may be one that the account is in.
    if (complete) for (const id of this.#revs.keys()) if (!ids.has(id)) await this.#leave(id);
    for (const { id, rev } of mine) {
      const have = this.#revs.get(id);
      if (have === undefined) await this.#enter(session, { id, rev }, isFresh);
      else if (have > rev) await this.#rewind(id, rev);
      else if (have < rev) await this.#catchUp(session, id, have);
    }
    this.#hasFollowed = true;
    await this.#listener({ type: 'following', conversations: mine.length, complete });
  }

  /** Handles what the server says by itself; to be called for one after the other. */
  handle(session: ChatSession, { method, params }: Notification): Promise<void> | void {
    if (method === 'conversation.change') return this.#change(session, params);
    if (method === 'conversation.joined') return this.#joined(session, params);
    if (method === 'conversation.left') {
      const { conversation } = read(decodeLeft, params);
      return this.#revs.has(conversation) ? this.#leave(conversation) : undefined;
    }
    return this.#listener({ type: 'said', method, params });
  }

  #isMine(conversation: number): boolean {
    return this.#options.only?.has(conversation) ?? true;
  }

  #change(session: ChatSession, params: unknown): Promise<void> | void {
    const { conversation, ...change } = read(decodeChanged, params);
    const have = this.#revs.get(conversation);
    // Behind `left`, or of somebody else's choice: nothing of it is to be heard.
    if (have === undefined || change.rev <= have) return undefined;
    if (change.rev === have + 1) return this.#hear(conversation, change);
    return this.#catchUp(session, conversation, have);
  }

  #hear(conversation: number, change: Change): Promise<void> | void {
    const done = this.#listener({ type: 'change', conversation, change });
    if (done === undefined) return this.#count(conversation, change.rev);
    return done.then(() => this.#count(conversation, change.rev));
  }

  /** Only behind the listener: what it did not take in has to come again. */
  #count(conversation: number, rev: number): void {
    this.#revs.set(conversation, rev);
    this.#heard += 1;
  }

  /** Reads everything behind a rev, page by page, to the conversation's newest change. */
  async #catchUp(session: ChatSession, conversation: number, afterRev: number): Promise<void> {
    this.#open.add(conversation);
    for (let have = afterRev, more = true; more;) {
      const params = { conversation, after_rev: have, limit: this.#pageSize };
      const page = await this.#page(session, params);
      if (page === null) break;
      for (const change of page.changes) if (change.rev > have) await this.#hear(conversation, change);
      more = page.more && page.rev > have;
      have = Math.max(have, page.rev);
      this.#revs.set(conversation, have);
    }
    this.#open.delete(conversation);
  }

  /** Null: the account is in the conversation no more, which the stream says as well. */
  async #page(session: ChatSession, params: object): Promise<{ changes: Change[]; rev: number; more: boolean } | null> {
    try {
      const page = await session.call('conversations.sync', params, { decode: decodeChangePage });
      this.#pageSize = Math.min(PAGES.max, this.#pageSize * 2);
      return page;
    } catch (error) {
      this.#pageSize = Math.max(1, Math.floor(this.#pageSize / 4));
      if (error instanceof ServerError && error.code === 'not_found') return null;
      throw error;
    }
  }

  async #joined(session: ChatSession, params: unknown): Promise<void> {
    const { conversation, rev } = read(decodeJoined, params);
    if (!this.#isMine(conversation)) return;
    const have = this.#revs.get(conversation);
    if (have === undefined) await this.#enter(session, { id: conversation, rev }, true);
    else if (have < rev) await this.#catchUp(session, conversation, have);
  }

  /** A conversation that was not known. `isWhole`: the stream has everything of it that is wanted. */
  async #enter(session: ChatSession, { id, rev }: { id: number; rev: number }, isWhole: boolean): Promise<void> {
    const wanted = isWhole || this.#options.others === 'start' ? rev : Math.max(0, rev - JOINED_MEANWHILE);
    const begin = Math.min(rev, Math.max(wanted, this.#left.get(id) ?? 0));
    this.#left.delete(id);
    this.#revs.set(id, begin);
    if (this.#hasFollowed || !isWhole) await this.#listener({ type: 'joined', conversation: id });
    if (begin < rev) await this.#catchUp(session, id, begin);
  }

  async #leave(conversation: number): Promise<void> {
    this.#left.set(conversation, this.#revs.get(conversation) ?? 0);
    if (this.#left.size > MAX_LEFT) this.#left.delete(this.#left.keys().next().value!);
    this.#revs.delete(conversation);
    this.#open.delete(conversation);
    await this.#listener({ type: 'left', conversation });
  }

  async #rewind(conversation: number, rev: number): Promise<void> {
    this.#revs.set(conversation, rev);
    await this.#listener({ type: 'reset', conversation, rev });
  }
}

function read<Value>(decode: Decoder<Value>, params: unknown): Value {
  return decodeReceived(decode, params, 'the server says something that this client does not know');
}
