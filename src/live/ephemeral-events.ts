import type { Bus, Membership, EphemeralEvent } from '../bus/bus.ts';
import type { Log } from '../log.ts';
import { BoundedCache } from '../model/bounded-cache.ts';
import type { AccountId } from '../model/ids.ts';
import { findAccountSummary, listPresenceMemberships, type AccountSummary } from '../storage/groups/presence.ts';
import type { Pool } from '../storage/db/pool.ts';
import type { FeedRegistry } from './feed-registry.ts';
import { presenceNotification, readPositionNotification, typingNotification } from './frames.ts';
import type { LiveSessions } from './live-sessions.ts';
import { EncodedFrames } from './encoded-frames.ts';
import type { SendableSession } from './sendable-session.ts';
import { logFailureByKind } from './log-failure.ts';

/** In larger conversations nobody is told who writes, comes or goes: it would cost more than the messages do. */
const MAX_EPHEMERAL_CONVERSATION_SIZE = 200;
/** One who goes on writing is told of so often. */
const TYPING_THROTTLE_MS = 2_000;
const MAX_TYPING_THROTTLES = 10_000;
const MAX_CACHED_ACCOUNT_SUMMARIES = 10_000;
const ACCOUNT_SUMMARY_TTL_MS = 60_000;
/** Presence changes that wait to be sent, at most one for each account: more than a cluster has online. */
const MAX_QUEUED_PRESENCE_CHANGES = 1_000_000;
/** That one query finds the audience of. */
const PRESENCE_CHANGES_PER_QUERY = 200;
const QUERY_TIMEOUT_MS = 1_500;

/**
 * Tells sessions what is not stored: who types, what was read on another device, who is online. A failure loses what was
 * typed; presence is queued again.
 */
export class EphemeralEvents {
  readonly #bus: Bus;
  readonly #pool: Pool;
  readonly #sessions: LiveSessions;
  readonly #feeds: FeedRegistry;
  readonly #log: Log;
  readonly #typingThrottle = new BoundedCache<string, true>(MAX_TYPING_THROTTLES, { ttl: TYPING_THROTTLE_MS });
  readonly #accountSummaries = new BoundedCache<AccountId, AccountSummary>(MAX_CACHED_ACCOUNT_SUMMARIES, {
    ttl: ACCOUNT_SUMMARY_TTL_MS,
  });
  readonly #queuedPresenceChanges = new Map<AccountId, boolean>();
  #isSendingPresence = false;
  #unsubscribe: () => void = () => {};

  constructor(options: { bus: Bus; pool: Pool; sessions: LiveSessions; feeds: FeedRegistry; log: Log }) {
    this.#bus = options.bus;
    this.#pool = options.pool;
    this.#sessions = options.sessions;
    this.#feeds = options.feeds;
    this.#log = options.log;
  }

  start(): void {
    this.#unsubscribe = this.#bus.subscribe({
      ephemeral: (signal) => this.#onTypingOrRead(signal),
      accountsChanged: (ids) => {
        for (const id of ids) this.#accountSummaries.delete(id);
      },
    });
  }

  stop(): void {
    this.#unsubscribe();
    this.#queuedPresenceChanges.clear();
  }

  /**
   * An account came online or went offline. A later tick sends the newest change. An opposite one does not cancel it: a
   * client that asked for the list in between would keep the account as it was then.
   */
  queuePresenceChange(accountId: AccountId, online: boolean): void {
    const queued = this.#queuedPresenceChanges;
    if (queued.has(accountId) || queued.size < MAX_QUEUED_PRESENCE_CHANGES) queued.set(accountId, online);
  }

  /** Called about every second. */
  startSendingPresenceBatch(): void {
    if (this.#queuedPresenceChanges.size > 0 && !this.#isSendingPresence) void this.#sendPresenceBatch();
  }

  #onTypingOrRead(signal: EphemeralEvent): void {
    if (signal.kind === 'typing') void this.#sendTyping(signal);
    else if (signal.kind === 'read') {
      const { conversationId, accountId, seq } = signal;
      const sessions = this.#sessions
        .ofAccount(accountId)
        .filter(({ subscriptions }) => subscriptions?.follows(conversationId));
      for (const session of sessions) session.send(readPositionNotification(conversationId, seq));
    }
  }

  async #sendTyping({ conversationId, accountId }: Membership): Promise<void> {
    const feed = this.#feeds.get(conversationId);
    const name = `${conversationId}:${accountId}`;
    if (feed === null || feed.attached.size > MAX_EPHEMERAL_CONVERSATION_SIZE || this.#typingThrottle.has(name)) return;
    this.#typingThrottle.set(name, true);
    const accountSummary = await this.#accountSummary(accountId);
    if (accountSummary === null) return;
    const frame = new EncodedFrames([typingNotification(conversationId, accountSummary)]);
    for (const { session } of feed.attached) if (session.accountId !== accountId) session.sendEncoded(frame, 0);
  }

  async #accountSummary(id: AccountId): Promise<AccountSummary | null> {
    const known = this.#accountSummaries.get(id);
    if (known !== undefined) return known;
    try {
      const found = await this.#pool.run((sql) => findAccountSummary(sql, id), QUERY_TIMEOUT_MS);
      if (found !== null) this.#accountSummaries.set(id, found);
      return found;
    } catch (error) {
      logFailureByKind(this.#log, 'live: a signal was lost', error);
      return null;
    }
  }

  async #sendPresenceBatch(): Promise<void> {
    this.#isSendingPresence = true;
    const changes = new Map([...this.#queuedPresenceChanges].slice(0, PRESENCE_CHANGES_PER_QUERY));
    for (const id of changes.keys()) this.#queuedPresenceChanges.delete(id);
    try {
      const request = {
        accounts: [...changes.keys()],
        conversations: this.#feeds.ids(),
        maxMembers: MAX_EPHEMERAL_CONVERSATION_SIZE,
      };
      const audiences = await this.#pool.run((sql) => listPresenceMemberships(sql, request), QUERY_TIMEOUT_MS);
      for (const [id, found] of Map.groupBy(audiences, (each) => each.id)) {
        const { nick, name } = found[0]!;
        const frame = new EncodedFrames([presenceNotification({ id, nick, name }, changes.get(id)!)]);
        const followers = found.flatMap((each) => [...(this.#feeds.get(each.conversationId)?.attached ?? [])]);
        const sessions = new Set<SendableSession>(followers.map(({ session }) => session));
        for (const session of sessions) if (session.accountId !== id) session.sendEncoded(frame, 0);
      }
    } catch (error) {
      logFailureByKind(this.#log, 'live: presence could not be sent, and will be sent again', error);
      for (const [id, online] of changes) {
        // A newer change takes the place of this one.
        if (!this.#queuedPresenceChanges.has(id)) this.queuePresenceChange(id, online);
      }
    }
    this.#isSendingPresence = false;
  }
}
