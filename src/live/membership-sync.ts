import type { Bus } from '../bus/bus.ts';
import type { Log } from '../log.ts';
import type { AccountId, ConversationId } from '../model/ids.ts';
import { findMemberships, listMemberships } from '../storage/groups/conversation-heads.ts';
import type { MemberKey } from '../storage/groups/members.ts';
import type { Pool } from '../storage/db/pool.ts';
import type { LiveSessions } from './live-sessions.ts';
import { logFailureByKind } from './log-failure.ts';

const MEMBER_KEYS_PER_QUERY = 1_000;
const ACCOUNTS_PER_QUERY = 200;
const RETRY_DELAY_MS = 300;

/**
 * Keeps the subscriptions of sessions consistent with memberships. In the tick in which a notification of a membership
 * arrives, sessions stop sending the conversation to the account. They continue once the database has confirmed the
 * membership. A notification says only that something changed. So the answer to a query that began before the
 * notification is ignored.
 */
export class MembershipSync {
  readonly #bus: Bus;
  readonly #pool: Pool;
  readonly #sessions: LiveSessions;
  readonly #log: Log;
  /** Memberships to recheck, by conversation and account. */
  #pendingRechecks = new Map<string, MemberKey>();
  #isRechecking = false;
  #retryTimer: NodeJS.Timeout | null = null;
  #unsubscribe: () => void = () => {};
  #isStopped = false;

  constructor(options: { bus: Bus; pool: Pool; sessions: LiveSessions; log: Log }) {
    this.#bus = options.bus;
    this.#pool = options.pool;
    this.#sessions = options.sessions;
    this.#log = options.log;
  }

  start(): void {
    this.#unsubscribe = this.#bus.subscribe({
      membersChanged: (memberKeys) => {
        for (const { conversationId, accountId } of memberKeys) {
          const subscribedSessions = this.#sessions
            .ofAccount(accountId)
            .filter((session) => session.subscriptions !== null);
          for (const { subscriptions } of subscribedSessions) subscriptions!.suspend(conversationId);
          if (subscribedSessions.length > 0) this.recheck(conversationId, accountId);
        }
      },
    });
  }

  stop(): void {
    this.#isStopped = true;
    this.#unsubscribe();
    if (this.#retryTimer !== null) clearTimeout(this.#retryTimer);
  }

  /** Reads the account's membership in the conversation, and applies it to all its sessions. */
  recheck(conversationId: ConversationId, accountId: AccountId): void {
    this.#pendingRechecks.set(`${conversationId}:${accountId}`, { conversationId, accountId });
    if (!this.#isRechecking) void this.#recheckPending();
  }

  /** Rechecks each membership that differs from what the sessions follow: its notification may have been lost. */
  async reconcile(): Promise<void> {
    const accounts = [...this.#sessions.accounts];
    for (let start = 0; start < accounts.length && !this.#isStopped; start += ACCOUNTS_PER_QUERY) {
      const chunk = accounts.slice(start, start + ACCOUNTS_PER_QUERY);
      const found = await this.#pool.run((sql) => listMemberships(sql, chunk));
      const byAccount = Map.groupBy(found, (key) => key.accountId);
      for (const id of chunk) this.#recheckDifferingMemberships(id, byAccount.get(id) ?? []);
    }
  }

  #recheckDifferingMemberships(accountId: AccountId, memberKeys: readonly MemberKey[]): void {
    const current = new Set(memberKeys.map((key) => key.conversationId));
    for (const { subscriptions } of this.#sessions.ofAccount(accountId)) {
      if (subscriptions === null) continue;
      for (const id of subscriptions.conversations) if (!current.has(id)) this.recheck(id, accountId);
      if (!subscriptions.isFull) for (const id of current) if (!subscriptions.follows(id)) this.recheck(id, accountId);
    }
  }

  async #recheckPending(): Promise<void> {
    this.#isRechecking = true;
    while (this.#pendingRechecks.size > 0 && !this.#isStopped) {
      const keys = [...this.#pendingRechecks.values()].slice(0, MEMBER_KEYS_PER_QUERY);
      for (const key of keys) this.#pendingRechecks.delete(mapKey(key));
      try {
        await this.#recheckKeys(keys);
      } catch (error) {
        logFailureByKind(this.#log, 'live: memberships could not be read', error);
        for (const key of keys) this.#pendingRechecks.set(mapKey(key), key);
        this.#scheduleRetry();
        break;
      }
    }
    this.#isRechecking = false;
  }

  async #recheckKeys(keys: readonly MemberKey[]): Promise<void> {
    const found = await this.#pool.run((sql) => findMemberships(sql, keys));
    const byKey = new Map(found.map((each) => [mapKey(each), each]));
    for (const key of keys) {
      const keyText = mapKey(key);
      // The membership changed again during this query: the answer of the next query decides.
      if (this.#pendingRechecks.has(keyText)) continue;
      for (const { subscriptions } of this.#sessions.ofAccount(key.accountId)) {
        subscriptions?.applyMembership(key.conversationId, byKey.get(keyText) ?? null);
      }
    }
  }

  #scheduleRetry(): void {
    this.#retryTimer ??= setTimeout(() => {
      this.#retryTimer = null;
      if (!this.#isRechecking) void this.#recheckPending();
    }, RETRY_DELAY_MS);
  }
}

function mapKey({ conversationId, accountId }: MemberKey): string {
  return `${conversationId}:${accountId}`;
}
