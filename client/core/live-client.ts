import { BACKOFF, backoffMs, type BackoffBounds } from './backoff.ts';
import {
  AnswerTimeoutError,
  ConnectionError,
  isTransient,
  ServerError,
  SessionOverError,
  StoppedError,
  TooManyRequestsError,
} from './chat-error.ts';
import { ChatSession, SESSION_BOUNDS, SESSION_ENDED, type SessionBounds } from './chat-session.ts';
import type { Connect, ConnectionEnd } from './connection.ts';
import type { Decoder } from './decode.ts';
import type { ChatListener } from './events.ts';
import { Follower, type FollowOptions } from './follower.ts';
import { Inbox } from './inbox.ts';
import { decodeAuthenticated, type Account } from './shapes.ts';
import { wait } from './wait.ts';

/** A connection that lived so long was a good one: the next attempt comes soon. */
const GOOD_MS = 5_000;
const MAX_WAITING = 1_000;
/** Of a repeat that the server asked for. */
const MAX_REPEAT_MS = 10_000;
/** What may wait for a slow listener before reading stops. */
const CROWDED_BYTES = 1024 * 1024;
/** The same while answers are waited for, which come behind what waits: the connection is begun anew then. */
const OVERFULL_BYTES = 64 * 1024 * 1024;

/** Who connects how, and what for. */
export interface LiveClientOptions {
  readonly connect: Connect;
  /** Of the session. It leaves this process only towards the server. */
  readonly token: string;
  /** Null: only requests are made. */
  readonly follow: FollowOptions | null;
  readonly listener: ChatListener;
  readonly bounds?: Partial<SessionBounds>;
  readonly backoff?: BackoffBounds;
}

/** How one request is made. */
interface CallOptions<Result> {
  readonly decode: Decoder<Result>;
  /** Over all attempts, and waiting for a connection. */
  readonly timeoutMs?: number;
  /** It does no harm when it is done twice, so that it is made again after the connection broke beneath it. */
  readonly isRepeatable?: boolean;
  /** Not to be waited with: rejects with ConnectionError where there is no connection. For listeners. */
  readonly isImmediate?: boolean;
}

/**
 * A client that stays connected: it signs in, follows from where it was, and does so again whenever the connection
 * ends, until it is stopped or its session is over. What its listener hears is said in `events.ts`.
 */
export class LiveClient {
  /** Resolves when the client is over: with null after `stop`, else with what ended it. */
  readonly over: Promise<Error | null>;
  /** For those who watch: connections on which the server knew who this is. */
  readonly counts = { connections: 0 };
  readonly #options: LiveClientOptions;
  readonly #bounds: SessionBounds;
  readonly #follower: Follower | null;
  readonly #stopped = new AbortController();
  readonly #waiting = new Set<() => void>();
  /** The connection, from its making to its end. */
  #current: ChatSession | null = null;
  /** The same while requests can be made on it. */
  #session: ChatSession | null = null;
  /** When it was known on the last connection who this is. */
  #sinceMs = 0;
  #account: Account | null = null;
  #sessionNumber: number | null = null;
  #lastFailure: Error | null = null;
  /** Set with the end of `#run`. */
  #end: Error | null = null;
  #running: Promise<void> | null = null;
  #settle: (end: Error | null) => void = () => {};

  constructor(options: LiveClientOptions) {
    this.#options = options;
    this.#bounds = { ...SESSION_BOUNDS, ...options.bounds };
    this.#follower = options.follow === null ? null : new Follower(options.follow, options.listener);
    this.over = new Promise((resolve) => {
      this.#settle = resolve;
    });
  }

  /** By conversation, the last change that the listener was done with; empty without following. */
  get revs(): ReadonlyMap<number, number> {
    return this.#follower?.revs ?? new Map();
  }

  /** Whose session it is; null before the first connection. */
  get account(): Account | null {
    return this.#account;
  }

  /** The number of the session that the token is of; null before the first connection. */
  get sessionNumber(): number | null {
    return this.#sessionNumber;
  }

  /** Begins to connect, and goes on until the end. Idempotent. */
  start(): void {
    this.#running ??= this.#run().then(
      () => this.#finish(null),
      (error: unknown) => this.#finish(error as Error),
    );
  }

  /** Ends the connection; once this has resolved nothing more is heard. Idempotent. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    this.#current?.close();
    this.#wake();
    if (this.#running === null) this.#finish(null);
    await this.#running;
  }

  /** Resolves when the first attempt to connect has succeeded; rejects with why it has not, while further ones go on. */
  async firstAttempt(): Promise<Account> {
    while (this.#account === null) {
      if (this.#end !== null || this.#lastFailure !== null) throw this.#end ?? this.#lastFailure!;
      await this.#change(null);
    }
    return this.#account;
  }

  /**
   * Calls an operation. Waits for a connection where there is none. Rejects with ServerError, ConnectionError or
   * AnswerTimeoutError (what it asked for may have been done, unless it `isRepeatable`), SessionOverError, StoppedError.
   */
  async call<Result>(method: string, params: unknown, options: CallOptions<Result>): Promise<Result> {
    const { decode, timeoutMs = this.#bounds.answerTimeoutMs, isRepeatable = false, isImmediate = false } = options;
    if (isImmediate && this.#session === null) throw new ConnectionError('there is no connection');
    const deadlineMs = performance.now() + timeoutMs;
    for (;;) {
      const session = await this.#connected(deadlineMs);
      const restMs = Math.max(1, Math.ceil(deadlineMs - performance.now()));
      try {
        return await session.call(method, params, { decode, timeoutMs: restMs });
      } catch (error) {
        if (!isRepeatable || !isTransient(error)) throw error;
        const pauseMs = repeatAfterMs(error);
        if (performance.now() + pauseMs >= deadlineMs) throw error;
        await wait(pauseMs, this.#stopped.signal);
      }
    }
  }

  async #connected(deadlineMs: number): Promise<ChatSession> {
    for (;;) {
      if (this.#end !== null) throw this.#end;
      if (this.#stopped.signal.aborted) throw new StoppedError('the client was stopped');
      if (this.#session !== null) return this.#session;
      const restMs = deadlineMs - performance.now();
      if (restMs <= 0) throw this.#lastFailure ?? new AnswerTimeoutError('there was no connection in time');
      await this.#change(restMs);
    }
  }

  /** Resolves when the state of the connection has changed, or after the time. */
  async #change(timeoutMs: number | null): Promise<void> {
    if (this.#waiting.size >= MAX_WAITING) throw new TooManyRequestsError('there are too many requests waiting');
    await new Promise<void>((resolve) => {
      const timer = timeoutMs === null ? undefined : setTimeout(() => wake(), timeoutMs);
      const wake = (): void => {
        clearTimeout(timer);
        this.#waiting.delete(wake);
        resolve();
      };
      this.#waiting.add(wake);
    });
  }

  #wake(): void {
    for (const wake of this.#waiting) wake();
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopped;
    for (let failures = 0; !signal.aborted;) {
      const before = { heard: this.#follower?.heard ?? 0, connections: this.counts.connections };
      const end = await this.#connectOnce();
      if (signal.aborted) return;
      const hasLived = this.counts.connections > before.connections && performance.now() - this.#sinceMs > GOOD_MS;
      const wasGood = hasLived || (this.#follower?.heard ?? 0) > before.heard;
      failures = wasGood ? 0 : failures + 1;
      const retryInMs = backoffMs(Math.max(0, failures - 1), this.#options.backoff ?? BACKOFF);
      await this.#options.listener({ type: 'disconnected', reason: end.reason, retryInMs });
      await wait(retryInMs, signal);
    }
  }

  /** From connecting to the end of the connection. Rejects with what another connection would not mend. */
  async #connectOnce(): Promise<ConnectionEnd> {
    let session: ChatSession | null = null;
    const inbox = new Inbox({
      handle: (notification) => this.#follower?.handle(session!, notification),
      crowded: () => session?.pause(),
      relieved: () => session?.resume(),
      overfull: () => session?.destroy('more came than could be taken in'),
      maxBytes: CROWDED_BYTES,
      overfullBytes: OVERFULL_BYTES,
    });
    let broken: unknown = null;
    try {
      const bounds = { ...this.#bounds, signal: this.#stopped.signal };
      session = await ChatSession.open(this.#options.connect, (said) => inbox.put(said), bounds);
      this.#current = session;
      if (this.#stopped.signal.aborted) session.close();
      await this.#begin(session, inbox, (error) => {
        broken = error;
        session?.destroy('what the server said could not be handled');
      });
      const end = await session.ended;
      if (end.code === SESSION_ENDED) throw new SessionOverError(end.reason);
      if (broken !== null && !isTransient(broken)) throw broken;
      return end;
    } catch (error) {
      return this.#explain(error);
    } finally {
      this.#session = null;
      this.#current = null;
      session?.destroy('it was given up');
      await inbox.close();
      this.#wake();
    }
  }

  async #begin(session: ChatSession, inbox: Inbox, failed: (error: unknown) => void): Promise<void> {
    const params = { token: this.#options.token };
    const { account, session: number } = await session.call('live.authenticate', params, {
      decode: decodeAuthenticated,
    });
    this.#account = account;
    this.#sessionNumber = number;
    this.#sinceMs = performance.now();
    this.counts.connections += 1;
    this.#lastFailure = null;
    await this.#options.listener({ type: 'connected', account });
    // Before the follower begins: what it hears may need a call, which would wait for a connection, and that one for it.
    this.#session = session;
    this.#wake();
    const followed = await this.#follower?.begin(session);
    if (followed === undefined) return;
    await this.#follower?.place(session, followed);
    inbox.open(failed);
  }

  /** What came to pass before the connection ended by itself. */
  #explain(error: unknown): ConnectionEnd {
    if (error instanceof ServerError && error.code === 'unauthenticated') {
      throw new SessionOverError('the session has ended', { cause: error });
    }
    // Connections of this account that have broken without a word count until the server misses them.
    const isCrowded = error instanceof ServerError && error.code === 'quota_exceeded';
    if (!isTransient(error) && !isCrowded) throw error;
    this.#lastFailure = error as Error;
    return { code: null, reason: (error as Error).message };
  }

  #finish(end: Error | null): void {
    this.#end = end ?? new StoppedError('the client was stopped');
    this.#session = null;
    this.#settle(end);
    this.#wake();
  }
}

function repeatAfterMs(error: unknown): number {
  const seconds = error instanceof ServerError ? (error.retryAfterS ?? 0) : 0;
  return Math.min(MAX_REPEAT_MS, seconds * 1_000) * (0.5 + Math.random() / 2);
}
