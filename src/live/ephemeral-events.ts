import type { Bus, Membership, EphemeralEvent } from '../bus/bus.ts';
import type { Log } from '../log.ts';
import { BoundedCache } from '../model/bounded-cache.ts';
import type { AccountId } from '../model/ids.ts';
import { findAccountSummary, listPresenceRecipients, type AccountSummary } from '../storage/groups/presence.ts';
import type { Pool } from '../storage/db/pool.ts';
import type { FeedRegistry } from './feed-registry.ts';
import { presenceText, readText, typingText } from './frames.ts';
import type { LiveSessions } from './live-sessions.ts';
import { EncodedFrames } from './encoded-frames.ts';
import type { Subscriber } from './subscriber.ts';
import { logFailure } from './log-failure.ts';

/** In larger conversations nobody is told who writes, comes or goes: it would cost more than the messages do. */
const MAX_AUDIENCE = 200;
/** One who goes on writing is told of so often. */
const TYPING_INTERVAL_MS = 2_000;
const MAX_TYPING = 10_000;
const MAX_PERSONAS = 10_000;
const PERSONA_TTL_MS = 60_000;
/** Comings and goings that wait to be told, and that one query finds the audience of. */
const MAX_CHANGES = 10_000;
const CHANGES_PER_QUERY = 200;
const QUERY_MS = 1_500;

/**
 * Tells sessions what is not stored: who types, what was read on another device, who is online. A failure loses what was
 * typed; presence is sent again.
 */
export class EphemeralEvents {
  readonly #bus: Bus;
  readonly #pool: Pool;
  readonly #sessions: LiveSessions;
  readonly #feeds: FeedRegistry;
  readonly #log: Log;
  readonly #typing = new BoundedCache<string, true>(MAX_TYPING, { ttl: TYPING_INTERVAL_MS });
  readonly #accountSummaries = new BoundedCache<AccountId, AccountSummary>(MAX_PERSONAS, { ttl: PERSONA_TTL_MS });
  readonly #changes = new Map<AccountId, boolean>();
  #isSending = false;
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
      ephemeral: (signal) => this.#onSignal(signal),
      accountsChanged: (ids) => {
        for (const id of ids) this.#accountSummaries.delete(id);
      },
    });
  }

  stop(): void {
    this.#unsubscribe();
    this.#changes.clear();
  }

  /** An account came online or went offline. The next tick sends what is left: opposite changes cancel each other. */
  presenceChanged(accountId: AccountId, online: boolean): void {
    const pending = this.#changes.get(accountId);
    if (pending === !online) this.#changes.delete(accountId);
    else if (pending === undefined && this.#changes.size < MAX_CHANGES) this.#changes.set(accountId, online);
  }

  /** Called about every second. */
  tick(): void {
    if (this.#changes.size > 0 && !this.#isSending) void this.#sendPresence();
  }

  #onSignal(signal: EphemeralEvent): void {
    if (signal.kind === 'typing') void this.#sendTyping(signal);
    else if (signal.kind === 'read') {
      const { conversationId, accountId, seq } = signal;
      const sessions = this.#sessions
        .of(accountId)
        .filter(({ subscriptions }) => subscriptions?.follows(conversationId));
      for (const session of sessions) session.send(readText(conversationId, seq));
    }
  }

  async #sendTyping({ conversationId, accountId }: Membership): Promise<void> {
    const feed = this.#feeds.get(conversationId);
    const name = `${conversationId}:${accountId}`;
    if (feed === null || feed.attached.size > MAX_AUDIENCE || this.#typing.has(name)) return;
    this.#typing.set(name, true);
    const accountSummary = await this.#accountSummary(accountId);
    if (accountSummary === null) return;
    const frame = new EncodedFrames([typingText(conversationId, accountSummary)]);
    for (const { session } of feed.attached) if (session.accountId !== accountId) session.sendEncoded(frame, 0);
  }

  async #accountSummary(id: AccountId): Promise<AccountSummary | null> {
    const known = this.#accountSummaries.get(id);
    if (known !== undefined) return known;
    try {
      const found = await this.#pool.run((sql) => findAccountSummary(sql, id), QUERY_MS);
      if (found !== null) this.#accountSummaries.set(id, found);
      return found;
    } catch (error) {
      logFailure(this.#log, 'live: a signal was lost', error);
      return null;
    }
  }

  async #sendPresence(): Promise<void> {
    this.#isSending = true;
    const changes = new Map([...this.#changes].slice(0, CHANGES_PER_QUERY));
    for (const id of changes.keys()) this.#changes.delete(id);
    try {
      const request = { accounts: [...changes.keys()], conversations: this.#feeds.ids(), maxMembers: MAX_AUDIENCE };
      const audiences = await this.#pool.run((sql) => listPresenceRecipients(sql, request), QUERY_MS);
      for (const [id, found] of Map.groupBy(audiences, (each) => each.id)) {
        const { nick, name } = found[0]!;
        const frame = new EncodedFrames([presenceText({ id, nick, name }, changes.get(id)!)]);
        const followers = found.flatMap((each) => [...(this.#feeds.get(each.conversationId)?.attached ?? [])]);
        const sessions = new Set<Subscriber>(followers.map(({ session }) => session));
        for (const session of sessions) if (session.accountId !== id) session.sendEncoded(frame, 0);
      }
    } catch (error) {
      logFailure(this.#log, 'live: presence could not be sent, and will be sent again', error);
      // A newer change of the same account is the opposite, so that nothing is left to be sent.
      for (const [id, online] of changes) this.presenceChanged(id, online);
    }
    this.#isSending = false;
  }
}
