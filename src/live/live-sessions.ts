import { setTimeout as wait } from 'node:timers/promises';
import type { LiveConnectionsConfig } from '../config/config.ts';
import type { Log } from '../log.ts';
import type { AccountId, ConversationId, SessionOrTokenId } from '../model/ids.ts';
import type { SourceKey } from '../model/source-key.ts';
import { liveTransports, type LiveTransport } from '../model/transport.ts';
import type { AccountCaller } from '../operations/core/caller.ts';
import type { Operation } from '../operations/core/operation.ts';
import { RateLimiter } from '../operations/core/rate-limiter.ts';
import type { Services } from '../operations/core/services.ts';
import { ConnectionQuotas } from './connection-quotas.ts';
import type { CloseReason } from './close-codes.ts';
import type { LiveConnection } from './transport/live-connection.ts';
import type { FeedRegistry } from './feed-registry.ts';
import { ForegroundAccounts } from './foreground-accounts.ts';
import type { LiveCounts, DisconnectReason } from './live-counts.ts';
import { Session, type SessionHost, type SessionState } from './session.ts';

/**
 * The rate of requests before the sign-in for each source. It lets a thousand clients of one network reconnect at once
 * after a restart. A separate rate slows clients that present invalid tokens.
 */
const UNAUTHENTICATED_REQUEST_RATE = { perSecond: 500, burst: 5_000, maxKeys: 10_000 };
const MAX_REJECTION_DELAY_MS = 5_000;
const MAX_RATE_LIMITED_SOURCES = 10_000;
const countedSessionStates = ['unauthenticated', 'authenticated', 'subscribed', 'closing'] as const;

/** Callbacks about sessions that start and end. */
export interface SessionEvents {
  onSessionAuthenticated(): void;
  /** The account's first foreground session on this node started. */
  firstForegroundSessionStarted(accountId: AccountId): void;
  /** The account's last foreground session on this node ended. */
  lastForegroundSessionEnded(accountId: AccountId): void;
  /** The account's last foreground session on this node went to the background. */
  lastForegroundSessionBackgrounded(accountId: AccountId): void;
  /** Requests a read of the membership from the database. */
  recheckMembership(conversationId: ConversationId, accountId: AccountId): void;
  /**
   * Resolves once the session was looked up after the last change of its account. Null: its account has not changed
   * since the session began.
   */
  whenRevalidated(session: Session): Promise<void> | null;
}

/** All sessions of this node, with indexes by account and by sign-in. */
export class LiveSessions implements SessionHost {
  readonly config: LiveConnectionsConfig;
  readonly services: Services;
  readonly operations: ReadonlyMap<string, Operation>;
  readonly counts: LiveCounts;
  readonly feeds: FeedRegistry;
  readonly log: Log;
  readonly quotas: ConnectionQuotas;
  readonly foregroundAccounts = new ForegroundAccounts();
  readonly #events: SessionEvents;
  readonly #all = new Set<Session>();
  readonly #byAccount = new Map<AccountId, Session[]>();
  readonly #bySession = new Map<SessionOrTokenId, Session[]>();
  readonly #unauthenticatedRequestRate = new RateLimiter<SourceKey>(UNAUTHENTICATED_REQUEST_RATE);
  readonly #rejectedTokenRate: RateLimiter<SourceKey>;
  #livenessClockMs = 0;
  #lastTickAtMs = performance.now();
  #onEmpty: (() => void) | null = null;

  constructor(
    services: Services,
    operations: ReadonlyMap<string, Operation>,
    deps: { counts: LiveCounts; feeds: FeedRegistry; events: SessionEvents },
  ) {
    this.services = services;
    this.operations = operations;
    this.config = services.config.live;
    this.log = services.log;
    this.counts = deps.counts;
    this.feeds = deps.feeds;
    this.#events = deps.events;
    this.quotas = new ConnectionQuotas(this.config);
    const perSecond = services.config.limits.unknownTokensPerSecondPerSource;
    this.#rejectedTokenRate = new RateLimiter({ perSecond, burst: perSecond, maxKeys: MAX_RATE_LIMITED_SOURCES });
  }

  get livenessClockMs(): number {
    return this.#livenessClockMs;
  }

  get all(): ReadonlySet<Session> {
    return this.#all;
  }

  /** Accounts that have a session on this node. */
  get accounts(): Iterable<AccountId> {
    return this.#byAccount.keys();
  }

  ofAccount(accountId: AccountId): readonly Session[] {
    return this.#byAccount.get(accountId) ?? [];
  }

  bySession(id: SessionOrTokenId): readonly Session[] {
    return this.#bySession.get(id) ?? [];
  }

  /** Opens a session for an admitted connection; the client has yet to sign in. */
  open(connection: LiveConnection): Session {
    const session = new Session(connection, this);
    this.#all.add(session);
    return session;
  }

  register(session: Session, caller: AccountCaller): boolean {
    const existing = this.ofAccount(caller.accountId);
    if (existing.length >= this.config.maxConnectionsPerUser) return false;
    addTo(this.#byAccount, caller.accountId, session);
    addTo(this.#bySession, caller.sessionId, session);
    this.quotas.releaseUnauthenticated(session.connection.source);
    this.#events.onSessionAuthenticated();
    this.onForegroundChanged(session, caller.accountId);
    return true;
  }

  onForegroundChanged(session: Session, accountId = session.accountId): void {
    const { foregroundAccounts } = this;
    if (session.isForeground) {
      if (foregroundAccounts.addSession(accountId)) this.#events.firstForegroundSessionStarted(accountId);
    } else if (foregroundAccounts.removeSession(accountId)) this.#events.lastForegroundSessionBackgrounded(accountId);
  }

  reserveRequest(caller: AccountCaller | null, source: SourceKey, maxWaitMs: number): number | null {
    if (caller === null) return this.#unauthenticatedRequestRate.reserve(source, maxWaitMs);
    return this.services.sessionRequestLimiter.reserve(caller.sessionId, maxWaitMs);
  }

  async delayRejection(source: SourceKey): Promise<void> {
    const waitMs = this.#rejectedTokenRate.reserve(source, MAX_REJECTION_DELAY_MS) ?? MAX_REJECTION_DELAY_MS;
    if (waitMs > 0) await wait(waitMs, undefined, { ref: false });
  }

  whenRevalidated(session: Session): Promise<void> | null {
    return this.#events.whenRevalidated(session);
  }

  recheckMembership(conversationId: ConversationId, accountId: AccountId): void {
    this.#events.recheckMembership(conversationId, accountId);
  }

  onClosingOrClosed(
    session: Session,
    {
      stateBeforeTransition,
      disconnectReason,
    }: { stateBeforeTransition: SessionState; disconnectReason: DisconnectReason },
  ): void {
    if (stateBeforeTransition !== 'closing') {
      this.counts.disconnected[disconnectReason] += 1;
      if (stateBeforeTransition === 'unauthenticated') this.quotas.releaseUnauthenticated(session.connection.source);
      this.#unregister(session);
    }
    if (session.state !== 'closed') return;
    this.#all.delete(session);
    this.quotas.release();
    if (this.#all.size === 0) this.#onEmpty?.();
  }

  /**
   * Checks heartbeats and deadlines of all sessions. One timer for all sessions calls this every `intervalMs`. After a
   * pause of the process, this tick runs before the process reads what clients sent meanwhile. So a pause counts for at
   * most two intervals.
   */
  tick(intervalMs: number): void {
    const atMs = performance.now();
    this.#livenessClockMs += Math.min(atMs - this.#lastTickAtMs, 2 * intervalMs);
    this.#lastTickAtMs = atMs;
    for (const session of this.#all) session.tick(this.#livenessClockMs);
  }

  /** Ends every session that follows conversations; a request that is being served is answered first. */
  closeSubscribed(reason: CloseReason): void {
    for (const session of this.#all) if (session.subscriptions !== null) session.closeAfterRequest(reason);
  }

  /**
   * Closes all sessions, and resolves when the last one is closed. Cuts the remaining connections after `timeoutMs`.
   */
  async closeAll(reason: CloseReason, timeoutMs: number): Promise<void> {
    if (this.#all.size === 0) return;
    const whenEmpty = new Promise<void>((resolve) => {
      this.#onEmpty = resolve;
    });
    for (const session of this.#all) session.closeAfterRequest(reason);
    const timer = setTimeout(() => {
      for (const session of this.#all) session.destroy();
    }, timeoutMs);
    await whenEmpty;
    clearTimeout(timer);
  }

  tallyByTransportAndState(): {
    kind: LiveTransport;
    state: (typeof countedSessionStates)[number];
    sessions: number;
    tallyRowQueuedBytesSum: number;
  }[] {
    const rows = liveTransports.flatMap((kind) =>
      countedSessionStates.map((state) => ({ kind, state, sessions: 0, tallyRowQueuedBytesSum: 0 })),
    );
    for (const { connection, state } of this.#all) {
      const row = rows.find((each) => each.kind === connection.kind && each.state === state);
      if (row === undefined) continue;
      row.sessions += 1;
      row.tallyRowQueuedBytesSum += connection.bytesQueued;
    }
    return rows;
  }

  #unregister(session: Session): void {
    const { caller } = session;
    if (caller === null) return;
    removeFrom(this.#byAccount, caller.accountId, session);
    removeFrom(this.#bySession, caller.sessionId, session);
    if (session.isForeground && this.foregroundAccounts.removeSession(caller.accountId))
      this.#events.lastForegroundSessionEnded(caller.accountId);
  }
}

function addTo<Key>(map: Map<Key, Session[]>, key: Key, session: Session): void {
  const list = map.get(key);
  if (list === undefined) map.set(key, [session]);
  else list.push(session);
}

/** Makes a new list, since a caller may be iterating over the old list. */
function removeFrom<Key>(map: Map<Key, Session[]>, key: Key, session: Session): void {
  const list = map.get(key)?.filter((each) => each !== session) ?? [];
  if (list.length === 0) map.delete(key);
  else map.set(key, list);
}
