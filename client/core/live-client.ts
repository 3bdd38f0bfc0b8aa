import { DEFAULT_BACKOFF, backoffMs, type BackoffDelays } from './backoff.ts';
import {
  AnswerTimeoutError,
  ConnectionError,
  isTransient,
  ServerError,
  SessionOverError,
  ClientStoppedError,
  TooManyPendingRequestsError,
} from './chat-error.ts';
import { ChatSession, DEFAULT_SESSION_BOUNDS, SESSION_ENDED_CLOSE_CODE, type SessionBounds } from './chat-session.ts';
import type { ConnectFunction, ConnectionEnd } from './connection.ts';
import type { Decoder } from './decode.ts';
import type { ChatListener } from './events.ts';
import { ConversationFollower, type FollowOptions } from './follower.ts';
import { NotificationQueue } from './notification-queue.ts';
import { decodeAuthenticated, type Account } from './shapes.ts';
import { waitOrUntilAborted } from './wait.ts';

/**
 * If a connection lasted longer than this, the wait before the next attempt to connect starts again at its shortest.
 */
const STABLE_CONNECTION_MS = 5_000;
const MAX_CALLS_AWAITING_CONNECTION = 1_000;
/** The longest wait before the client repeats a call that the server refused for a transient reason. */
const MAX_CALL_RETRY_DELAY_MS = 10_000;
/** If more bytes than this wait for a slow listener, the client stops reading from the connection. */
const NOTIFICATION_QUEUE_HIGH_WATER_BYTES = 1024 * 1024;
/**
 * While calls wait for answers, the client does not stop reading. If more bytes than this wait for a slow listener, it
 * reconnects.
 */
const NOTIFICATION_QUEUE_OVERFLOW_BYTES = 64 * 1024 * 1024;

/** How a client connects and signs in, and which conversations it follows. */
export interface LiveClientOptions {
  readonly connect: ConnectFunction;
  /**
   * The token of the session; the client sends it to the server only. Null: a page, whose browser sends the session
   * cookie.
   */
  readonly token: string | null;
  /** Null: the client makes requests, and follows no conversations. */
  readonly follow: FollowOptions | null;
  readonly listener: ChatListener;
  readonly bounds?: Partial<SessionBounds>;
  readonly backoff?: BackoffDelays;
}

interface CallOptions<Result> {
  readonly decode: Decoder<Result>;
  /** The longest time for all attempts together, the wait for a connection included. */
  readonly timeoutMs?: number;
  /**
   * True: the operation is idempotent, so the client repeats it after a transient failure, such as a broken connection.
   */
  readonly isRepeatable?: boolean;
  /** Rejects with ConnectionError instead of waiting for a connection, as listeners need. */
  readonly failsWhenDisconnected?: boolean;
}

/**
 * A client that stays connected until the caller stops it or its session ends. On each new connection it signs in, and
 * follows from its last position. `events.ts` lists the events for its listener.
 */
export class LiveClient {
  /** Resolves when the client no longer reconnects: to null after `stop`, otherwise to the error that is the reason. */
  readonly ended: Promise<Error | null>;
  /** For tests and measurements: the number of connections on which the server has authenticated the client. */
  readonly counts = { authenticatedConnections: 0 };
  readonly #options: LiveClientOptions;
  readonly #bounds: SessionBounds;
  readonly #follower: ConversationFollower | null;
  readonly #stopped = new AbortController();
  readonly #stateWaiters = new Set<() => void>();
  /** The connection, from the attempt to connect until its end. */
  #connectedSession: ChatSession | null = null;
  /** The connection while the client can make requests on it; otherwise null. */
  #authenticatedSession: ChatSession | null = null;
  /** The time at which the server authenticated the last connection, as `performance.now` counts. */
  #lastAuthenticatedAtMs = 0;
  #account: Account | null = null;
  #signInSessionNumber: number | null = null;
  #lastConnectionError: Error | null = null;
  #reconnectWait: AbortController | null = null;
  /** The error of every call after the client has ended; null until then. */
  #callRejectionAfterEnd: Error | null = null;
  #runPromise: Promise<void> | null = null;
  #resolveEnded: (end: Error | null) => void = () => {};

  constructor(options: LiveClientOptions) {
    this.#options = options;
    this.#bounds = { ...DEFAULT_SESSION_BOUNDS, ...options.bounds };
    this.#follower = options.follow === null ? null : new ConversationFollower(options.follow, options.listener);
    this.ended = new Promise((resolve) => {
      this.#resolveEnded = resolve;
    });
  }

  /**
   * By conversation, the rev of the last change that the listener has handled; empty where the client does not follow.
   */
  get handledRevByConversation(): ReadonlyMap<number, number> {
    return this.#follower?.handledRevByConversation ?? new Map();
  }

  /**
   * By conversation, the epoch of the server's log that the last handled rev belongs to; empty where the client does
   * not follow.
   */
  get epochByConversation(): ReadonlyMap<number, number> {
    return this.#follower?.epochByConversation ?? new Map();
  }

  /** The account of the session; null before the first connection. */
  get account(): Account | null {
    return this.#account;
  }

  /** The server's number of the session that the token belongs to; null before the first connection. */
  get signInSessionNumber(): number | null {
    return this.#signInSessionNumber;
  }

  /** Starts connecting, and reconnects until the client ends. Idempotent. */
  start(): void {
    this.#runPromise ??= this.#connectRepeatedly().then(
      () => this.#finish(null),
      (error: unknown) => this.#finish(error as Error),
    );
  }

  /** Closes the connection; once this has resolved, the listener gets no further event. Idempotent. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    this.#connectedSession?.close();
    this.#wakeWaiters();
    if (this.#runPromise === null) this.#finish(null);
    await this.#runPromise;
  }

  /** Makes the next attempt to connect at once, if a person asks for it or the network is back. */
  reconnectNow(): void {
    this.#reconnectWait?.abort();
  }

  /**
   * Resolves when the first attempt to connect has succeeded. Rejects if that attempt has failed, while the client
   * makes further attempts.
   */
  async awaitFirstAttempt(): Promise<Account> {
    while (this.#account === null) {
      if (this.#callRejectionAfterEnd !== null || this.#lastConnectionError !== null)
        throw this.#callRejectionAfterEnd ?? this.#lastConnectionError!;
      await this.#awaitStateChange(null);
    }
    return this.#account;
  }

  /**
   * Calls an operation. Waits for a connection where there is none. Rejects with:
   * - ServerError
   * - ConnectionError or AnswerTimeoutError: the server may have carried the request out
   * - SessionOverError
   * - ClientStoppedError
   */
  async call<Result>(method: string, params: unknown, options: CallOptions<Result>): Promise<Result> {
    const {
      decode,
      timeoutMs = this.#bounds.answerTimeoutMs,
      isRepeatable = false,
      failsWhenDisconnected = false,
    } = options;
    if (failsWhenDisconnected && this.#authenticatedSession === null)
      throw new ConnectionError(`${method} was not sent: there is no connection now`);
    const deadlineMs = performance.now() + timeoutMs;
    for (;;) {
      const session = await this.#awaitAuthenticatedSession(deadlineMs);
      const remainingMs = Math.max(1, Math.ceil(deadlineMs - performance.now()));
      try {
        return await session.call(method, params, { decode, timeoutMs: remainingMs });
      } catch (error) {
        if (!isRepeatable || !isTransient(error)) throw error;
        const pauseMs = callRetryDelayMs(error);
        if (performance.now() + pauseMs >= deadlineMs) throw error;
        await waitOrUntilAborted(pauseMs, this.#stopped.signal);
      }
    }
  }

  async #awaitAuthenticatedSession(deadlineMs: number): Promise<ChatSession> {
    for (;;) {
      if (this.#callRejectionAfterEnd !== null) throw this.#callRejectionAfterEnd;
      if (this.#stopped.signal.aborted) throw new ClientStoppedError('the client was stopped');
      if (this.#authenticatedSession !== null) return this.#authenticatedSession;
      const remainingMs = deadlineMs - performance.now();
      if (remainingMs <= 0)
        throw this.#lastConnectionError ?? new AnswerTimeoutError('there was no connection in time');
      await this.#awaitStateChange(remainingMs);
    }
  }

  /** Resolves when the state of the connection has changed, or when the time has passed. */
  async #awaitStateChange(timeoutMs: number | null): Promise<void> {
    if (this.#stateWaiters.size >= MAX_CALLS_AWAITING_CONNECTION)
      throw new TooManyPendingRequestsError('there are too many requests waiting: wait for an answer first');
    await new Promise<void>((resolve) => {
      const timer = timeoutMs === null ? undefined : setTimeout(() => wake(), timeoutMs);
      const wake = (): void => {
        clearTimeout(timer);
        this.#stateWaiters.delete(wake);
        resolve();
      };
      this.#stateWaiters.add(wake);
    });
  }

  #wakeWaiters(): void {
    for (const wake of this.#stateWaiters) wake();
  }

  async #connectRepeatedly(): Promise<void> {
    const { signal } = this.#stopped;
    for (let failures = 0; !signal.aborted;) {
      const countsBefore = {
        handledChangeCount: this.#follower?.handledChangeCount ?? 0,
        connections: this.counts.authenticatedConnections,
      };
      const end = await this.#connectUntilEnd();
      if (signal.aborted) return;
      const wasStable =
        this.counts.authenticatedConnections > countsBefore.connections &&
        performance.now() - this.#lastAuthenticatedAtMs > STABLE_CONNECTION_MS;
      const wasGood = wasStable || (this.#follower?.handledChangeCount ?? 0) > countsBefore.handledChangeCount;
      failures = wasGood ? 0 : failures + 1;
      const retryInMs = backoffMs(Math.max(0, failures - 1), this.#options.backoff ?? DEFAULT_BACKOFF);
      await this.#options.listener({ type: 'disconnected', reason: end.reason, retryInMs });
      const wait = new AbortController();
      this.#reconnectWait = wait;
      await waitOrUntilAborted(retryInMs, AbortSignal.any([signal, wait.signal]));
      this.#reconnectWait = null;
    }
  }

  /** Connects and waits for the end of the connection. Rejects with errors that another connection would not cure. */
  async #connectUntilEnd(): Promise<ConnectionEnd> {
    let session: ChatSession | null = null;
    const notificationQueue = new NotificationQueue({
      handle: (notification) => this.#follower?.handle(session!, notification),
      onHighWater: () => session?.requestPause(),
      onLowWater: () => session?.withdrawPauseRequest(),
      onOverflow: () => session?.destroy('more came than could be taken in'),
      highWaterBytes: NOTIFICATION_QUEUE_HIGH_WATER_BYTES,
      overflowBytes: NOTIFICATION_QUEUE_OVERFLOW_BYTES,
    });
    let handlingError: unknown = null;
    try {
      const bounds = { ...this.#bounds, connectCancellation: this.#stopped.signal };
      session = await ChatSession.open(
        this.#options.connect,
        (notification) => notificationQueue.enqueueOrOverflow(notification),
        bounds,
      );
      this.#connectedSession = session;
      if (this.#stopped.signal.aborted) session.close();
      await this.#authenticateAndFollow(session, notificationQueue, (error) => {
        handlingError = error;
        session?.destroy('what the server said could not be handled');
      });
      const end = await session.ended;
      if (end.code === SESSION_ENDED_CLOSE_CODE) throw new SessionOverError(end.reason);
      if (handlingError !== null && !isTransient(handlingError)) throw handlingError;
      return end;
    } catch (error) {
      return this.#connectionEndOrRethrow(error);
    } finally {
      this.#authenticatedSession = null;
      this.#connectedSession = null;
      session?.destroy('it was given up');
      await notificationQueue.discardAndWait();
      this.#wakeWaiters();
    }
  }

  async #authenticateAndFollow(
    session: ChatSession,
    notificationQueue: NotificationQueue,
    onFailed: (error: unknown) => void,
  ): Promise<void> {
    const { token } = this.#options;
    const { account, session: number } = await session.call('live.authenticate', token === null ? {} : { token }, {
      decode: decodeAuthenticated,
    });
    this.#account = account;
    this.#signInSessionNumber = number;
    this.#lastAuthenticatedAtMs = performance.now();
    this.counts.authenticatedConnections += 1;
    this.#lastConnectionError = null;
    // Set before the listener gets an event, because the listener may make a call. Without this session the call would
    // fail, or would wait for a connection that waits for the listener.
    this.#authenticatedSession = session;
    await this.#options.listener({ type: 'connected', account });
    this.#wakeWaiters();
    const subscribeResult = await this.#follower?.closeGapsAndSubscribe(session);
    if (subscribeResult === undefined) return;
    await this.#follower?.reconcileWithSubscribed(session, subscribeResult);
    notificationQueue.startProcessing(onFailed);
  }

  /** Turns an error that a new connection can cure into the end of the connection; rethrows any other. */
  #connectionEndOrRethrow(error: unknown): ConnectionEnd {
    if (error instanceof ServerError && error.code === 'unauthenticated') {
      throw new SessionOverError('the session has ended', { cause: error });
    }
    // Broken connections of this account count against its quota until the server notices that they are dead.
    const isOverConnectionQuota = error instanceof ServerError && error.code === 'quota_exceeded';
    if (!isTransient(error) && !isOverConnectionQuota) throw error;
    this.#lastConnectionError = error as Error;
    return { code: null, reason: (error as Error).message };
  }

  #finish(endError: Error | null): void {
    this.#callRejectionAfterEnd = endError ?? new ClientStoppedError('the client was stopped');
    this.#authenticatedSession = null;
    this.#resolveEnded(endError);
    this.#wakeWaiters();
  }
}

function callRetryDelayMs(error: unknown): number {
  const seconds = error instanceof ServerError ? (error.assumedRetrySIfTransient ?? 0) : 0;
  return Math.min(MAX_CALL_RETRY_DELAY_MS, seconds * 1_000) * (0.5 + Math.random() / 2);
}
