import { setTimeout as wait } from 'node:timers/promises';
import type { LiveConnectionsConfig } from '../config/config.ts';
import { KlatchError } from '../errors.ts';
import type { Log } from '../log.ts';
import type { AccountId, ConversationId, LogEpoch } from '../model/ids.ts';
import type { SourceKey } from '../model/source-key.ts';
import {
  MAX_SUBSCRIBED_CONVERSATIONS,
  type AccountCaller,
  type Caller,
  type SubscribeResult,
  type SubscriptionStartPoints,
  type LiveSession,
} from '../operations/core/caller.ts';
import { translateLostRead } from '../operations/core/database-errors.ts';
import { MAX_ANONYMOUS_FRAME_BYTES, ANONYMOUS_FRAME_LIMITS, FRAME_LIMITS } from '../operations/core/input-limits.ts';
import type { Operation } from '../operations/core/operation.ts';
import type { Services } from '../operations/core/services.ts';
import { listHeadsOfAccount } from '../storage/groups/conversation-heads.ts';
import type { FoundSession } from '../storage/accounts/sessions.ts';
import type { CloseReason } from './close-codes.ts';
import { ConnectionActivity } from './connection-activity.ts';
import type { LiveConnection, ConnectionListener } from './transport/live-connection.ts';
import { parseJsonOrUndefined, serveRequest } from './json-rpc.ts';
import type { LiveCounts, DisconnectReason } from './live-counts.ts';
import type { EncodedFrames } from './encoded-frames.ts';
import type { FeedRegistry } from './feed-registry.ts';
import { SessionExpiry } from './session-expiry.ts';
import { SessionSubscriptions } from './session-subscriptions.ts';

/** A session with this many queued requests pauses reading; the size of their texts has a bound as well. */
const MAX_QUEUED_REQUESTS = 256;
/** A client exceeds its rate limit when its next request would have to wait longer than this. */
const MAX_RATE_DELAY_MS = 2_000;
const MAX_REJECTED_TOKENS = 5;
/** The most requests of a client before it signs in. A sign-in takes only a few. */
const MAX_UNAUTHENTICATED_REQUESTS = 100;
/** Time for a client to read its queued frames and to end the connection from its side. */
const CLOSE_TIMEOUT_MS = 10_000;
const NO_REQUESTS: readonly PendingRequest[] = [];

/** `unauthenticated`: the client has not signed in. */
export type SessionState = 'unauthenticated' | 'authenticated' | 'subscribed' | 'closing' | 'closed';

/** The parts that sessions share, and the registry of all sessions. */
export interface SessionHost {
  readonly config: LiveConnectionsConfig;
  readonly services: Services;
  readonly operations: ReadonlyMap<string, Operation>;
  readonly counts: LiveCounts;
  readonly feeds: FeedRegistry;
  readonly log: Log;
  /** A clock that counts only time in which the node could receive from clients, as of the last tick. */
  readonly livenessClockMs: number;
  /** Registers a session of the caller's account; false: the account has too many sessions. */
  register(session: Session, caller: AccountCaller): boolean;
  /** Reserves a request's turn: returns its wait in ms, or null when the wait exceeds `maxWaitMs`. */
  reserveRequest(caller: AccountCaller | null, source: SourceKey, maxWaitMs: number): number | null;
  /** Resolves when a client that tries tokens may get the answer that its token is invalid. */
  delayRejection(source: SourceKey): Promise<void>;
  /** Resolves once the session was looked up after the last change of its account; null: there was no change. */
  whenRevalidated(session: Session): Promise<void> | null;
  /** Called when an open session goes to the foreground or background. */
  onForegroundChanged(session: Session): void;
  /** Reads the account's membership from the database, and applies it to all its sessions. */
  recheckMembership(conversationId: ConversationId, accountId: AccountId): void;
  /** Called when a session begins to close, and when it is closed. */
  onClosingOrClosed(
    session: Session,
    transition: { stateBeforeTransition: SessionState; disconnectReason: DisconnectReason },
  ): void;
}

interface PendingRequest {
  readonly text: string;
  /** The time of the request's turn, on the monotonic clock. */
  readonly dueAtMs: number;
}

/** One client's connection, from its first byte to its last: its sign-in, its requests and its notifications. */
export class Session implements LiveSession, ConnectionListener {
  readonly connection: LiveConnection;
  readonly #host: SessionHost;
  readonly #activity: ConnectionActivity;
  #state: SessionState = 'unauthenticated';
  #caller: AccountCaller | null = null;
  #subscriptions: SessionSubscriptions | null = null;
  #expiry: SessionExpiry | null = null;
  #requestQueue: PendingRequest[] = NO_REQUESTS as PendingRequest[];
  #queuedRequestTextLength = 0;
  #isServing = false;
  #isInputPaused = false;
  /** The client has closed its sending side. */
  #clientClosedItsSide = false;
  /** The session closes for this reason as soon as the current request is answered. */
  #pendingClose: CloseReason | null = null;
  #disconnectReason: DisconnectReason = 'client';
  #rejectedTokenCount = 0;
  #unauthenticatedRequestCount = 0;
  /** `livenessClockMs` at the last sign of life, or when the session began to close. */
  #lastActiveOrClosingMs: number;
  #isPingSent = false;
  #isForeground = true;

  constructor(connection: LiveConnection, host: SessionHost) {
    this.connection = connection;
    this.#host = host;
    this.#activity = new ConnectionActivity(connection);
    this.#lastActiveOrClosingMs = host.livenessClockMs;
  }

  get state(): SessionState {
    return this.#state;
  }

  get handshakeCookies(): LiveSession['handshakeCookies'] {
    return this.connection.handshakeCookies;
  }

  /** Whether the session can send. */
  get isOpen(): boolean {
    return this.#state !== 'closing' && this.#state !== 'closed';
  }

  /** Null before the sign-in. */
  get caller(): AccountCaller | null {
    return this.#caller;
  }

  /** Only for a session that has signed in. */
  get accountId(): AccountId {
    return this.#caller!.accountId;
  }

  /** Null until the session subscribes. */
  get subscriptions(): SessionSubscriptions | null {
    return this.#subscriptions;
  }

  onAuthenticated(caller: AccountCaller): void {
    if (this.#state !== 'unauthenticated') {
      throw new KlatchError('forbidden', { sentence: 'This connection is somebody already: open another one' });
    }
    if (!this.#host.register(this, caller)) {
      this.#pendingClose = 'too_many_connections';
      throw new KlatchError('quota_exceeded', { sentence: 'This account has as many live connections as it may have' });
    }
    this.#caller = caller;
    this.#state = 'authenticated';
    this.connection.setMaxFrameBytes(this.#host.config.maxFrameBytes);
    this.#expireAt(caller.expiresAt);
  }

  /** Whether the client reports that its app is in the foreground. */
  get isForeground(): boolean {
    return this.#isForeground;
  }

  setForeground(isForeground: boolean): void {
    if (isForeground === this.#isForeground) return;
    this.#isForeground = isForeground;
    if (this.isOpen) this.#host.onForegroundChanged(this);
  }

  async onTokenRejected(): Promise<void> {
    this.#rejectedTokenCount += 1;
    if (this.#rejectedTokenCount >= MAX_REJECTED_TOKENS) this.#pendingClose = 'unauthenticated';
    await this.#host.delayRejection(this.connection.source);
  }

  async subscribe(request: SubscriptionStartPoints): Promise<SubscribeResult> {
    if (this.#state !== 'authenticated' || this.#subscriptions !== null) {
      throw new KlatchError('invalid_input', { sentence: 'This connection follows already' });
    }
    const { accountId } = this.#caller!;
    const subscriptions = new SessionSubscriptions(this, this.#host.feeds);
    this.#subscriptions = subscriptions;
    try {
      const { general } = this.#host.services.database;
      let isComplete = true;
      let epochs = { currentEpoch: 0 as LogEpoch, previousEpoch: 0 as LogEpoch };
      const conversations = await subscriptions.load(request, async () => {
        const { heads, currentEpoch, previousEpoch } = await translateLostRead(
          general.run((sql) => listHeadsOfAccount(sql, accountId, MAX_SUBSCRIBED_CONVERSATIONS + 1)),
        );
        epochs = { currentEpoch, previousEpoch };
        this.#host.feeds.observeEpoch(currentEpoch);
        isComplete = heads.length <= MAX_SUBSCRIBED_CONVERSATIONS;
        return heads.slice(0, MAX_SUBSCRIBED_CONVERSATIONS);
      });
      return { conversations, isComplete, ...epochs };
    } catch (error) {
      this.#subscriptions = null;
      throw error;
    }
  }

  /**
   * Applies the current state of the account and its sign-in. The account may have another name or role. The sign-in
   * may expire later, since it was used.
   */
  updateAccount({ role, nick, name, expiresAt }: FoundSession): void {
    if (this.#caller === null || !this.isOpen) return;
    if (expiresAt?.getTime() !== this.#caller.expiresAt?.getTime()) this.#expireAt(expiresAt);
    this.#caller = { ...this.#caller, role, nick, name, expiresAt };
  }

  #expireAt(expiresAt: Date | null): void {
    this.#expiry?.stop();
    this.#expiry = expiresAt === null ? null : new SessionExpiry(expiresAt, () => this.close('session_ended'));
  }

  send(text: string): void {
    if (this.#closeIfTooSlow()) return;
    this.#host.counts.countSent(this.connection.kind, 1);
    this.connection.send(text);
  }

  sendEncoded(frames: EncodedFrames, framesToSkip: number): void {
    if (this.#closeIfTooSlow()) return;
    this.#host.counts.countSent(this.connection.kind, frames.frameCount - framesToSkip);
    this.connection.sendEncoded(frames, framesToSkip);
  }

  /** Sends the queued frames and the reason, then closes the connection. */
  close(reason: CloseReason): void {
    if (!this.isOpen) return;
    this.#markEnded('closing', reason);
    this.connection.close(reason);
  }

  /** Closes the session once its current request is answered, or at once if there is none. */
  closeAfterRequest(reason: CloseReason): void {
    if (this.#isServing) this.#pendingClose = reason;
    else this.close(reason);
  }

  destroy(): void {
    this.connection.destroy();
  }

  onText(text: string): void {
    if (!this.isOpen || this.#clientClosedItsSide) return;
    this.#host.counts.framesIn[this.connection.kind] += 1;
    const dueInMs = this.#reserveRequest();
    if (dueInMs === null) return;
    if (this.#requestQueue === NO_REQUESTS) this.#requestQueue = [];
    this.#requestQueue.push({ text, dueAtMs: performance.now() + dueInMs });
    this.#queuedRequestTextLength += text.length;
    if (!this.#isInputPaused && this.#isQueueFull) {
      this.#isInputPaused = true;
      this.connection.pause();
    }
    if (!this.#isServing) void this.#serveQueue();
  }

  countPingAsRequest(): void {
    this.#reserveRequest();
  }

  onProtocolError(reason: CloseReason): void {
    this.close(reason);
  }

  onEnd(): void {
    this.#clientClosedItsSide = true;
    if (!this.#isServing) this.close('normal');
  }

  onClose(code: number): void {
    if (code === 0 && this.#state !== 'closing') this.#disconnectReason = 'client';
    this.#markEnded('closed', null);
  }

  /**
   * Called at each tick: pings a silent client, and ends a session that gave no sign of life or exceeded a deadline.
   */
  tick(livenessClockMs: number): void {
    const { heartbeatMs, authTimeoutMs } = this.#host.config;
    const ageMs = livenessClockMs - this.#lastActiveOrClosingMs;
    if (this.#state === 'closing') {
      if (ageMs > CLOSE_TIMEOUT_MS) this.destroy();
    } else if (this.#state === 'unauthenticated') {
      if (ageMs > authTimeoutMs) this.close('unauthenticated');
    } else if (this.#activity.wasActive(this.#isInputPaused)) {
      this.#lastActiveOrClosingMs = livenessClockMs;
      this.#isPingSent = false;
    } else if (ageMs > 2 * heartbeatMs) {
      this.close('ping_timeout');
      // A client that gave no sign of life does not read the close frame: the connection is cut at once.
      this.destroy();
    } else if (ageMs > heartbeatMs && !this.#isPingSent) {
      this.#isPingSent = true;
      this.connection.ping();
    }
  }

  get #isQueueFull(): boolean {
    const maxBytes = this.#caller === null ? MAX_ANONYMOUS_FRAME_BYTES : this.#host.config.maxFrameBytes;
    return this.#requestQueue.length >= MAX_QUEUED_REQUESTS || this.#queuedRequestTextLength >= maxBytes;
  }

  /** Milliseconds until the next request's turn; null: the client exceeded a limit, and the connection was closed. */
  #reserveRequest(): number | null {
    this.#unauthenticatedRequestCount += this.#caller === null ? 1 : 0;
    if (this.#caller === null && this.#unauthenticatedRequestCount > MAX_UNAUTHENTICATED_REQUESTS) {
      this.close('rate_limited');
      return null;
    }
    const dueInMs = this.#host.reserveRequest(this.#caller, this.connection.source, MAX_RATE_DELAY_MS);
    if (dueInMs === null) this.close('rate_limited');
    return dueInMs;
  }

  /** Serves one request after the other, in the order in which they came. */
  async #serveQueue(): Promise<void> {
    this.#isServing = true;
    for (let next = this.#requestQueue.shift(); next !== undefined && this.isOpen; next = this.#requestQueue.shift()) {
      this.#queuedRequestTextLength -= next.text.length;
      await this.#waitUntilServable(next);
      if (this.#expiry?.isExpired === true) this.close('session_ended');
      if (this.isOpen && this.#pendingClose === null) await this.#serve(next.text);
      if (this.#pendingClose !== null) this.close(this.#pendingClose);
      if (this.#isInputPaused && this.isOpen && !this.#isQueueFull) {
        this.#isInputPaused = false;
        this.connection.resume();
      }
    }
    this.#requestQueue = NO_REQUESTS as PendingRequest[];
    this.#queuedRequestTextLength = 0;
    this.#isServing = false;
    if (this.#clientClosedItsSide) this.close('normal');
  }

  /** Waits for the request's turn, until the client has read earlier answers, and for a pending revalidation. */
  async #waitUntilServable({ dueAtMs }: PendingRequest): Promise<void> {
    const waitMs = dueAtMs - performance.now();
    if (waitMs > 1) await wait(waitMs, undefined, { ref: false });
    if (this.connection.isFull) await this.connection.drained();
    await this.#host.whenRevalidated(this);
  }

  async #serve(text: string): Promise<void> {
    // An empty line is no request, only a sign of life.
    if (text.trim() === '') return;
    const { services, operations, log } = this.#host;
    const json = await this.#parseWithinBudget(text);
    if (!this.isOpen) return;
    if (json === undefined) {
      this.close('invalid_json');
      return;
    }
    const caller: Caller = this.#caller ?? { kind: 'anonymous', source: this.connection.source, live: this };
    const response = await serveRequest(json, { services, operations, log, caller });
    if (response !== null) this.send(response);
    if (this.#subscriptions !== null && this.#state === 'authenticated') this.#startFollowing(this.#subscriptions);
  }

  /** Parses a request once its source has parse time left; closes the connection if the source gets none in time. */
  async #parseWithinBudget(text: string): Promise<unknown> {
    const { parseBudget } = this.#host.services;
    const { source } = this.connection;
    const limits = this.#caller === null ? ANONYMOUS_FRAME_LIMITS : FRAME_LIMITS;
    try {
      const refusal = (): KlatchError => new KlatchError('rate_limited');
      return await parseBudget.runQueued(source, { maxWaitMs: MAX_RATE_DELAY_MS, refusal }, () =>
        parseJsonOrUndefined(text, limits),
      );
    } catch (error) {
      if (!(error instanceof KlatchError)) throw error;
      this.close('rate_limited');
      return undefined;
    }
  }

  #startFollowing(subscriptions: SessionSubscriptions): void {
    this.#state = 'subscribed';
    for (const conversationId of subscriptions.startFollowingTakingChangedMemberships())
      this.#host.recheckMembership(conversationId, this.#caller!.accountId);
  }

  /** Closes the session when too many bytes are queued: the client must reconnect for the rest. */
  #closeIfTooSlow(): boolean {
    if (!this.isOpen) return true;
    if (this.connection.bytesQueued <= this.#host.config.sendQueueBytes) return false;
    this.close('slow_consumer');
    return true;
  }

  #markEnded(state: 'closing' | 'closed', reason: CloseReason | null): void {
    const stateBeforeTransition = this.#state;
    if (stateBeforeTransition === 'closed') return;
    if (reason !== null) this.#disconnectReason = reason;
    this.#state = state;
    this.#lastActiveOrClosingMs = this.#host.livenessClockMs;
    this.#subscriptions?.stop();
    this.#expiry?.stop();
    this.#host.onClosingOrClosed(this, { stateBeforeTransition, disconnectReason: this.#disconnectReason });
  }
}
