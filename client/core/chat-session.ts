import { AnswerTimeoutError, ConnectionError, ProtocolError, SessionOverError } from './chat-error.ts';
import type { Connect, Connection, ConnectionBounds, ConnectionEnd } from './connection.ts';
import { decodeOrNull, decodeReceived, type Decoder } from './decode.ts';
import { RpcClient, type Notification } from './rpc-client.ts';
import { decodeEnded } from './shapes.ts';

/** The close code of a session that is over. After any other one the server can be connected to again. */
export const SESSION_ENDED = 4002;

/** Bounds of one connection with its requests. */
export interface SessionBounds extends ConnectionBounds {
  readonly maxPending: number;
  readonly answerTimeoutMs: number;
  /** After so long without a word of the server it is asked for one; without an answer the connection is given up. */
  readonly quietMs: number;
}

export const SESSION_BOUNDS: SessionBounds = {
  connectTimeoutMs: 10_000,
  // 200,000 characters, the most that a server can be configured to take, are 1.2 MB of escaped JSON; a page is more.
  maxTextBytes: 16 * 1024 * 1024,
  maxPending: 1_000,
  answerTimeoutMs: 30_000,
  quietMs: 15_000,
};

/** One connection from its making to its end: requests, and what the server says by itself. */
export class ChatSession {
  /** Resolves when the connection is over, with the server's own words where it gave some. */
  readonly ended: Promise<ConnectionEnd>;
  readonly #rpc: RpcClient;
  readonly #bounds: SessionBounds;
  #connection: Connection | null = null;
  #hasEnded = false;
  /** The server's last words, which stand in for a close code on connections of lines. */
  #farewell: ConnectionEnd | null = null;
  #heardAtMs = performance.now();
  #watch: ReturnType<typeof setInterval> | null = null;
  /** Somebody wants no more for now; and whether that is so, since answers that are waited for are let in. */
  #isFull = false;
  #isPaused = false;
  #underWay = 0;
  /** Why it is to be given up, if that was known before the connection was there. */
  #doom: string | null = null;
  #end: (end: ConnectionEnd) => void = () => {};

  private constructor(bounds: SessionBounds, notified: (notification: Notification) => void) {
    this.#bounds = bounds;
    this.#rpc = new RpcClient({
      send: (text) => this.#connection?.send(text),
      notified: (notification) => {
        if (!this.#listen(notification)) notified(notification);
      },
      maxPending: bounds.maxPending,
    });
    this.ended = new Promise((resolve) => {
      this.#end = resolve;
    });
  }

  /** `notified` may be called before this resolves. Rejects with ConnectionError. */
  static async open(
    connect: Connect,
    notified: (notification: Notification) => void,
    bounds: SessionBounds,
  ): Promise<ChatSession> {
    const session = new ChatSession(bounds, notified);
    const events = { text: (text: string) => session.#take(text), ended: (end: ConnectionEnd) => session.#finish(end) };
    const connection = await connect(events, bounds);
    session.#connection = connection;
    session.#watch = setInterval(() => session.#lookAlive(), bounds.quietMs / 2);
    if (session.#doom !== null) connection.destroy(session.#doom);
    return session;
  }

  /** Calls an operation and reads its result. Rejects as `RpcClient.call` does, and with ProtocolError. */
  async call<Result>(
    method: string,
    params: unknown,
    options: { decode: Decoder<Result>; timeoutMs?: number },
  ): Promise<Result> {
    const { decode, timeoutMs = this.#bounds.answerTimeoutMs } = options;
    const answer = await this.#ask(method, params, timeoutMs);
    return decodeReceived(decode, answer, `the server answers ${method} in a way that this client does not know`);
  }

  /** Stops reading, so that the server feels it; not while answers are waited for, which come behind what waits. */
  pause(): void {
    this.#isFull = true;
    this.#regulate();
  }

  resume(): void {
    this.#isFull = false;
    this.#regulate();
  }

  close(): void {
    this.#connection?.close();
  }

  destroy(reason: string): void {
    this.#doom ??= reason;
    this.#connection?.destroy(reason);
  }

  async #ask(method: string, params: unknown, timeoutMs: number): Promise<unknown> {
    this.#underWay += 1;
    this.#regulate();
    try {
      return await this.#rpc.call(method, params, timeoutMs);
    } finally {
      this.#underWay -= 1;
      this.#regulate();
    }
  }

  #regulate(): void {
    const isPaused = this.#isFull && this.#underWay === 0;
    if (isPaused === this.#isPaused) return;
    this.#isPaused = isPaused;
    this.#heardAtMs = performance.now();
    if (isPaused) this.#connection?.pause();
    else this.#connection?.resume();
  }

  #take(text: string): void {
    this.#heardAtMs = performance.now();
    if (this.#hasEnded) return;
    try {
      this.#rpc.take(text);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.destroy(error.message);
    }
  }

  /** Whether it was about the connection itself. */
  #listen({ method, params }: Notification): boolean {
    // Asked for a sign of life, on lines; WebSocket has frames of its own for it.
    if (method === 'ping') this.#ping();
    if (method === 'session.ended') {
      const said = decodeOrNull(decodeEnded, params);
      if (said !== null) this.#farewell = { code: said.code ?? null, reason: said.reason };
    }
    return method === 'ping' || method === 'session.ended';
  }

  /** A path that drops packets says nothing: only a question without an answer tells. */
  #lookAlive(): void {
    if (this.#isPaused || performance.now() - this.#heardAtMs < this.#bounds.quietMs) return;
    this.#heardAtMs = performance.now();
    this.#ping();
  }

  #ping(): void {
    this.#ask('live.ping', {}, this.#bounds.quietMs).catch((error: unknown) => {
      // A refusal is a sign of life as well.
      if (error instanceof AnswerTimeoutError) this.destroy('the server gave no sign of life');
    });
  }

  #finish(end: ConnectionEnd): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    if (this.#watch !== null) clearInterval(this.#watch);
    const reason = this.#farewell?.reason ?? end.reason;
    const code = end.code ?? this.#farewell?.code ?? null;
    this.#rpc.end(code === SESSION_ENDED ? new SessionOverError(reason) : new ConnectionError(reason));
    this.#end({ code, reason });
  }
}
