import { AnswerTimeoutError, ConnectionError, ProtocolError, SessionOverError } from './chat-error.ts';
import type { ConnectFunction, Connection, ConnectionBounds, ConnectionEnd } from './connection.ts';
import { decodeOrNull, decodeReceived, type Decoder } from './decode.ts';
import { RpcClient, type Notification } from './rpc-client.ts';
import { decodeSessionEnded } from './shapes.ts';

/** The close code when a session has ended or expired. After any other close code the client may reconnect. */
export const SESSION_ENDED_CLOSE_CODE = 4002;

/** Bounds of one connection with its requests. */
export interface SessionBounds extends ConnectionBounds {
  readonly maxPendingRequests: number;
  readonly answerTimeoutMs: number;
  /**
   * After this time without a text from the server, the client pings the server. If no answer comes in the same time
   * again, the client closes the connection.
   */
  readonly quietBeforePingMs: number;
}

export const DEFAULT_SESSION_BOUNDS: SessionBounds = {
  connectTimeoutMs: 10_000,
  // A message can have at most 200,000 characters, if its server is configured so: 1.2 MB of escaped JSON. An answer
  // with a page of messages needs more.
  maxInboundTextBytes: 16 * 1024 * 1024,
  maxPendingRequests: 1_000,
  answerTimeoutMs: 30_000,
  quietBeforePingMs: 15_000,
};

/** One connection: its requests with their answers, and the notifications of the server. */
export class ChatSession {
  /** Resolves when the connection has closed, with the server's close code and reason if it sent them. */
  readonly ended: Promise<ConnectionEnd>;
  readonly #rpc: RpcClient;
  readonly #bounds: SessionBounds;
  #connection: Connection | null = null;
  #hasEnded = false;
  /** The last `session.ended` of the server: a TCP connection has no close code of its own. */
  #endAnnouncedByServer: ConnectionEnd | null = null;
  #quietPeriodStartMs = performance.now();
  #livenessTimer: ReturnType<typeof setInterval> | null = null;
  /** Whether the caller wants a pause. The connection pauses only while no call waits for an answer. */
  #isPauseRequested = false;
  #isPaused = false;
  #pendingCallCount = 0;
  /** The reason to close the connection, if `destroy` was called before it was open. */
  #destroyReason: string | null = null;
  #resolveEnded: (end: ConnectionEnd) => void = () => {};

  private constructor(bounds: SessionBounds, onNotification: (notification: Notification) => void) {
    this.#bounds = bounds;
    this.#rpc = new RpcClient({
      send: (text) => this.#connection?.send(text),
      onNotification: (notification) => {
        if (!this.#handleConnectionNotification(notification)) onNotification(notification);
      },
      maxPendingRequests: bounds.maxPendingRequests,
    });
    this.ended = new Promise((resolve) => {
      this.#resolveEnded = resolve;
    });
  }

  /** Connects. May call `onNotification` before it resolves. Rejects with ConnectionError. */
  static async open(
    connect: ConnectFunction,
    onNotification: (notification: Notification) => void,
    bounds: SessionBounds,
  ): Promise<ChatSession> {
    const session = new ChatSession(bounds, onNotification);
    const callbacks = {
      onText: (text: string) => session.#onText(text),
      onEnd: (end: ConnectionEnd) => session.#onConnectionEnd(end),
    };
    const connection = await connect(callbacks, bounds);
    session.#connection = connection;
    session.#livenessTimer = setInterval(() => session.#pingIfQuiet(), bounds.quietBeforePingMs / 2);
    if (session.#destroyReason !== null) connection.destroy(session.#destroyReason);
    return session;
  }

  /** Calls an operation and reads its result. Rejects as `RpcClient.call` does, and with ProtocolError. */
  async call<Result>(
    method: string,
    params: unknown,
    options: { decode: Decoder<Result>; timeoutMs?: number },
  ): Promise<Result> {
    const { decode, timeoutMs = this.#bounds.answerTimeoutMs } = options;
    const answer = await this.#callWhileReading(method, params, timeoutMs);
    const errorSentence =
      `the server answers ${method} in a way that this client does not know: ` +
      'use a client and a server of the same version';
    return decodeReceived(decode, answer, errorSentence);
  }

  /**
   * Stops reading, which slows the server down. Reading continues while calls wait: their answers come after the unread
   * data.
   */
  requestPause(): void {
    this.#isPauseRequested = true;
    this.#pauseOrResume();
  }

  withdrawPauseRequest(): void {
    this.#isPauseRequested = false;
    this.#pauseOrResume();
  }

  close(): void {
    this.#connection?.close();
  }

  destroy(reason: string): void {
    this.#destroyReason ??= reason;
    this.#connection?.destroy(reason);
  }

  async #callWhileReading(method: string, params: unknown, timeoutMs: number): Promise<unknown> {
    this.#pendingCallCount += 1;
    this.#pauseOrResume();
    try {
      return await this.#rpc.call(method, params, timeoutMs);
    } finally {
      this.#pendingCallCount -= 1;
      this.#pauseOrResume();
    }
  }

  #pauseOrResume(): void {
    const shouldBePaused = this.#isPauseRequested && this.#pendingCallCount === 0;
    if (shouldBePaused === this.#isPaused) return;
    this.#isPaused = shouldBePaused;
    this.#quietPeriodStartMs = performance.now();
    if (shouldBePaused) this.#connection?.pause();
    else this.#connection?.resume();
  }

  #onText(text: string): void {
    this.#quietPeriodStartMs = performance.now();
    if (this.#hasEnded) return;
    try {
      this.#rpc.receive(text);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.destroy(error.message);
    }
  }

  /** Handles a notification about the connection itself: a ping or the end of the session. False: it is another one. */
  #handleConnectionNotification({ method, params }: Notification): boolean {
    // Over TCP and TLS the server asks with this notification whether the client is alive; WebSocket has ping frames
    // for that.
    if (method === 'ping') this.#ping();
    if (method === 'session.ended') {
      const announcedEnd = decodeOrNull(decodeSessionEnded, params);
      if (announcedEnd !== null)
        this.#endAnnouncedByServer = { code: announcedEnd.code ?? null, reason: announcedEnd.reason };
    }
    return method === 'ping' || method === 'session.ended';
  }

  /** Pings a server that sends nothing: if the network drops all packets, only a ping without an answer shows that. */
  #pingIfQuiet(): void {
    if (this.#isPaused || performance.now() - this.#quietPeriodStartMs < this.#bounds.quietBeforePingMs) return;
    this.#quietPeriodStartMs = performance.now();
    this.#ping();
  }

  #ping(): void {
    this.#callWhileReading('live.ping', {}, this.#bounds.quietBeforePingMs).catch((error: unknown) => {
      // A server that refuses the ping is alive too.
      if (error instanceof AnswerTimeoutError) this.destroy('the server gave no sign of life');
    });
  }

  #onConnectionEnd(end: ConnectionEnd): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    if (this.#livenessTimer !== null) clearInterval(this.#livenessTimer);
    const reason = this.#endAnnouncedByServer?.reason ?? end.reason;
    const code = end.code ?? this.#endAnnouncedByServer?.code ?? null;
    this.#rpc.rejectPendingAndFuture(
      code === SESSION_ENDED_CLOSE_CODE ? new SessionOverError(reason) : new ConnectionError(reason),
    );
    this.#resolveEnded({ code, reason });
  }
}
