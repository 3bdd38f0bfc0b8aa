import type { Bus } from '../bus/bus.ts';
import type { Log } from '../log.ts';
import type { AccountId, ConversationId } from '../model/ids.ts';
import { findMemberships, listMemberships } from '../storage/following.ts';
import type { MemberKey } from '../storage/members.ts';
import type { Pool } from '../storage/pool.ts';
import type { LiveSessions } from './live-sessions.ts';
import { logFailure } from './log-failure.ts';

const KEYS_AT_ONCE = 1_000;
const ACCOUNTS_AT_ONCE = 200;
const RETRY_MS = 300;

/**
 * What sessions may follow, kept true: in the tick in which a word of a membership is heard nothing more of the
 * conversation is sent to the account, and goes on when the database has said that it may. A word says only that
 * something was changed, so that the answer to an older question must not settle a newer one.
 */
export class Memberships {
  readonly #bus: Bus;
  readonly #pool: Pool;
  readonly #sessions: LiveSessions;
  readonly #log: Log;
  /** Keys to ask for, by their text. */
  #open = new Map<string, MemberKey>();
  #isAsking = false;
  #timer: NodeJS.Timeout | null = null;
  #unsubscribe: () => void = () => {};
  #stopped = false;

  constructor(options: { bus: Bus; pool: Pool; sessions: LiveSessions; log: Log }) {
    this.#bus = options.bus;
    this.#pool = options.pool;
    this.#sessions = options.sessions;
    this.#log = options.log;
  }

  start(): void {
    this.#unsubscribe = this.#bus.subscribe({
      membersChanged: (keys) => {
        for (const { conversationId, accountId } of keys) {
          const followers = this.#sessions.of(accountId).filter((session) => session.stream !== null);
          for (const { stream } of followers) stream!.hold(conversationId);
          if (followers.length > 0) this.ask(conversationId, accountId);
        }
      },
    });
  }

  stop(): void {
    this.#stopped = true;
    this.#unsubscribe();
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  /** Finds out what the account is in the conversation, and settles that in all its sessions. */
  ask(conversationId: ConversationId, accountId: AccountId): void {
    this.#open.set(`${conversationId}:${accountId}`, { conversationId, accountId });
    if (!this.#isAsking) void this.#askAll();
  }

  /** Words may have been lost: asks for what differs from what the sessions follow. */
  async compare(): Promise<void> {
    const accounts = [...this.#sessions.accounts];
    for (let start = 0; start < accounts.length && !this.#stopped; start += ACCOUNTS_AT_ONCE) {
      const some = accounts.slice(start, start + ACCOUNTS_AT_ONCE);
      const found = await this.#pool.run((sql) => listMemberships(sql, some));
      const byAccount = Map.groupBy(found, (key) => key.accountId);
      for (const id of some) this.#compareOne(id, byAccount.get(id) ?? []);
    }
  }

  #compareOne(accountId: AccountId, found: readonly MemberKey[]): void {
    const held = new Set(found.map((key) => key.conversationId));
    for (const { stream } of this.#sessions.of(accountId)) {
      if (stream === null) continue;
      for (const id of stream.conversations) if (!held.has(id)) this.ask(id, accountId);
      if (!stream.isFull) for (const id of held) if (!stream.follows(id)) this.ask(id, accountId);
    }
  }

  async #askAll(): Promise<void> {
    this.#isAsking = true;
    while (this.#open.size > 0 && !this.#stopped) {
      const keys = [...this.#open.values()].slice(0, KEYS_AT_ONCE);
      for (const key of keys) this.#open.delete(nameOf(key));
      try {
        await this.#settle(keys);
      } catch (error) {
        logFailure(this.#log, 'live: memberships could not be read', error);
        for (const key of keys) this.#open.set(nameOf(key), key);
        this.#retry();
        break;
      }
    }
    this.#isAsking = false;
  }

  async #settle(keys: readonly MemberKey[]): Promise<void> {
    const found = await this.#pool.run((sql) => findMemberships(sql, keys));
    const byName = new Map(found.map((each) => [nameOf(each), each]));
    for (const key of keys) {
      const name = nameOf(key);
      // Changed again while this was asked: the next answer says what is so.
      if (this.#open.has(name)) continue;
      for (const { stream } of this.#sessions.of(key.accountId)) {
        stream?.settle(key.conversationId, byName.get(name) ?? null);
      }
    }
  }

  #retry(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = null;
      if (!this.#isAsking) void this.#askAll();
    }, RETRY_MS);
  }
}

function nameOf({ conversationId, accountId }: MemberKey): string {
  return `${conversationId}:${accountId}`;
}
