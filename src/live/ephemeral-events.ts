import type { Bus, Membership, EphemeralEvent } from '../bus/bus.ts';
import type { Log } from '../log.ts';
import { BoundedCache } from '../model/bounded-cache.ts';
import type { AccountId } from '../model/ids.ts';
import { findAccountSummary, listPresenceMemberships, type AccountSummary } from '../storage/groups/presence.ts';
import type { Pool } from '../storage/db/pool.ts';
import type { FeedRegistry } from './feed-registry.ts';
import {
  accountChangedNotification,
  presenceNotification,
  readPositionNotification,
  typingNotification,
  settingsUpdatedNotification,
} from './frames.ts';
import type { LiveSessions } from './live-sessions.ts';
import { EncodedFrames } from './encoded-frames.ts';
import type { SendableSession } from './sendable-session.ts';
import { logFailureByKind } from './log-failure.ts';

/**
 * A conversation with more members than this gets no presence notifications, and one with more followers on a node gets
 * no typing notifications there. These would cost more than the messages do.
 */
const MAX_EPHEMERAL_CONVERSATION_SIZE = 200;
/** The shortest interval between two typing notifications about one account in one conversation. */
const TYPING_THROTTLE_MS = 2_000;
const MAX_TYPING_THROTTLES = 10_000;
const MAX_CACHED_ACCOUNT_SUMMARIES = 10_000;
const ACCOUNT_SUMMARY_TTL_MS = 60_000;
/**
 * The most accounts with a queued change; changes of further accounts are dropped. A cluster has fewer accounts online.
 */
const MAX_QUEUED_ACCOUNTS = 1_000_000;
/** The most accounts in one query for the conversations whose followers are notified of the accounts' changes. */
const ACCOUNTS_PER_QUERY = 200;
const QUERY_TIMEOUT_MS = 1_500;

/** A change of an account of which clients are still to be notified. */
interface QueuedAccountChange {
  /** Null: the account neither came online nor went offline. */
  readonly online: boolean | null;
  /** True: the account has a new nick or name. */
  readonly isRenamed: boolean;
}

/**
 * Sends events that are not stored to sessions: typing, reads and settings of the account's other devices, presence,
 * and new names. When a query fails, typing events are lost, and changes of accounts are queued again.
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
  readonly #queuedAccounts = new Map<AccountId, QueuedAccountChange>();
  #isSendingAccountChanges = false;
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
      ephemeral: (event) => this.#onEphemeral(event),
      accountsChanged: (ids) => {
        for (const id of ids) {
          this.#accountSummaries.delete(id);
          this.#queue(id, { online: null, isRenamed: true });
        }
      },
    });
  }

  stop(): void {
    this.#unsubscribe();
    this.#queuedAccounts.clear();
  }

  /**
   * Queues the news that an account came online or went offline. A later tick sends the newest state, even if the
   * account changed back before the tick. In between, a client may have read the list of online accounts.
   */
  queuePresenceChange(accountId: AccountId, online: boolean): void {
    this.#queue(accountId, { online, isRenamed: false });
  }

  #queue(accountId: AccountId, { online, isRenamed }: QueuedAccountChange): void {
    const queued = this.#queuedAccounts.get(accountId);
    if (queued === undefined && this.#queuedAccounts.size >= MAX_QUEUED_ACCOUNTS) return;
    this.#queuedAccounts.set(accountId, {
      online: online ?? queued?.online ?? null,
      isRenamed: isRenamed || queued?.isRenamed === true,
    });
  }

  /** Begins to send the queued changes of accounts, unless changes are being sent. Called about every second. */
  startSendingAccountChanges(): void {
    if (this.#queuedAccounts.size > 0 && !this.#isSendingAccountChanges) void this.#sendAccountChanges();
  }

  #onEphemeral(event: EphemeralEvent): void {
    if (event.kind === 'typing') {
      void this.#sendTyping(event);
      return;
    }
    const { conversationId, accountId } = event;
    const notification =
      event.kind === 'read'
        ? readPositionNotification(conversationId, event.seq)
        : settingsUpdatedNotification(conversationId);
    for (const session of this.#sessions.ofAccount(accountId))
      if (session.subscriptions?.follows(conversationId) === true) session.send(notification);
  }

  async #sendTyping({ conversationId, accountId }: Membership): Promise<void> {
    const feed = this.#feeds.get(conversationId);
    const throttleKey = `${conversationId}:${accountId}`;
    if (feed === null || feed.attached.size > MAX_EPHEMERAL_CONVERSATION_SIZE || this.#typingThrottle.has(throttleKey))
      return;
    this.#typingThrottle.set(throttleKey, true);
    const accountSummary = await this.#accountSummary(accountId);
    if (accountSummary === null) return;
    const frame = new EncodedFrames([typingNotification(conversationId, accountSummary)]);
    for (const { session } of feed.attached) if (session.accountId !== accountId) session.sendEncoded(frame, 0);
  }

  async #accountSummary(id: AccountId): Promise<AccountSummary | null> {
    const cachedSummary = this.#accountSummaries.get(id);
    if (cachedSummary !== undefined) return cachedSummary;
    try {
      const found = await this.#pool.run((sql) => findAccountSummary(sql, id), QUERY_TIMEOUT_MS);
      if (found !== null) this.#accountSummaries.set(id, found);
      return found;
    } catch (error) {
      logFailureByKind(this.#log, 'live: a signal was lost', error);
      return null;
    }
  }

  async #sendAccountChanges(): Promise<void> {
    this.#isSendingAccountChanges = true;
    const changes = new Map([...this.#queuedAccounts].slice(0, ACCOUNTS_PER_QUERY));
    for (const id of changes.keys()) this.#queuedAccounts.delete(id);
    try {
      const membershipQuery = {
        accounts: [...changes.keys()],
        conversations: this.#feeds.ids(),
        maxMembers: MAX_EPHEMERAL_CONVERSATION_SIZE,
      };
      const presenceMemberships = await this.#pool.run(
        (sql) => listPresenceMemberships(sql, membershipQuery),
        QUERY_TIMEOUT_MS,
      );
      for (const [id, found] of Map.groupBy(presenceMemberships, (each) => each.id)) {
        const { nick, name } = found[0]!;
        const followers = found.flatMap((each) => [...(this.#feeds.get(each.conversationId)?.attached ?? [])]);
        const sessions = new Set<SendableSession>(followers.map(({ session }) => session));
        sendAccountChange({ id, nick, name }, changes.get(id)!, sessions);
      }
    } catch (error) {
      logFailureByKind(this.#log, 'live: changes of accounts could not be sent, and will be sent again', error);
      for (const [id, change] of changes) {
        const newerChange = this.#queuedAccounts.get(id);
        this.#queue(id, change);
        if (newerChange !== undefined) this.#queue(id, newerChange);
      }
    }
    this.#isSendingAccountChanges = false;
  }
}

/**
 * Notifies sessions of an account's change. The account's own sessions get its new name, but not its presence: they
 * know that it is online.
 */
function sendAccountChange(
  account: AccountSummary,
  { online, isRenamed }: QueuedAccountChange,
  sessions: ReadonlySet<SendableSession>,
): void {
  const renamedFrames = isRenamed ? new EncodedFrames([accountChangedNotification(account)]) : null;
  const presenceFrames = online === null ? null : new EncodedFrames([presenceNotification(account, online)]);
  for (const session of sessions) {
    if (renamedFrames !== null) session.sendEncoded(renamedFrames, 0);
    if (presenceFrames !== null && session.accountId !== account.id) session.sendEncoded(presenceFrames, 0);
  }
}
