import { connect, constants, type ClientHttp2Session, type ClientHttp2Stream } from 'node:http2';
import { parseBoundedRetryAfterMs } from '../outcomes.ts';

/** An answer, of which at most MAX_RESPONSE_BYTES were read. */
export interface H2Response {
  readonly status: number;
  readonly retryAfterMs: number | null;
  readonly body: string;
}

/**
 * Why a request got no answer:
 * - `connect`: no connection could be opened.
 * - `lost`: the connection ended during the request.
 * - `answer`: the answer is too long.
 * - `busy`: too many requests wait for a connection.
 * - `stopped`: this node closed its connections.
 */
type H2FailureReason = 'connect' | 'lost' | 'timeout' | 'answer' | 'busy' | 'stopped';

/** Thrown when a request gets no answer. */
export class H2Failure extends Error {
  override readonly name = 'H2Failure';
  readonly reason: H2FailureReason;

  constructor(reason: H2FailureReason, cause?: unknown) {
    super(`no answer: ${reason}`, { cause });
    this.reason = reason;
  }
}

/**
 * Options of a connection. `onCapacityChange` is called whenever the connection may accept more or fewer requests than
 * before.
 */
interface H2ConnectionOptions {
  readonly ca: readonly string[] | null;
  readonly connectTimeoutMs: number;
  readonly onCapacityChange: () => void;
}

/** The most requests at once on one connection, even if the other side allows more. */
const MAX_STREAMS = 500;
/** The longest answer that is read. Those of push services are short. */
const MAX_RESPONSE_BYTES = 16 * 1024;
/**
 * After this time without an answer from the other side, the connection gets a ping, which must be answered within the
 * time-out.
 */
const PING_AFTER_SILENCE_MS = 30_000;
const PING_TIMEOUT_MS = 5_000;
/**
 * A connection is replaced at this age. So host names are resolved again, and load balancers can use all of their
 * servers.
 */
const MAX_CONNECTION_AGE_MS = 60 * 60_000;
/**
 * A draining connection is destroyed after this time. Its requests have timed out long before, so if it is still open,
 * its normal close does not work.
 */
const DRAIN_TIMEOUT_MS = 90_000;
/** A connection without requests for this time is closed, so that a rarely used app holds no resources. */
const IDLE_TIMEOUT_MS = 15 * 60_000;

/** An HTTP/2 connection that carries many requests at once, and reports whether it accepts further ones. */
export class H2Connection {
  readonly #session: ClientHttp2Session;
  /** The headers that all requests have. */
  readonly #commonHeaders: readonly string[];
  readonly #options: H2ConnectionOptions;
  readonly #connectTimer: NodeJS.Timeout;
  readonly #healthTimer: NodeJS.Timeout;
  readonly #createdAtMs = performance.now();
  #lastActivityMs = performance.now();
  #lastRequestMs = performance.now();
  #pingTimer: NodeJS.Timeout | undefined;
  #hasConnected = false;
  #isDraining = false;
  #isClosed = false;
  #activeStreams = 0;
  #sessionError: unknown = null;
  #destroyTimer: NodeJS.Timeout | undefined;

  constructor(origin: string, options: H2ConnectionOptions) {
    this.#options = options;
    const { ca, connectTimeoutMs } = options;
    const { protocol, host } = new URL(origin);
    this.#commonHeaders = [':method', 'POST', ':scheme', protocol.slice(0, -1), ':authority', host];
    this.#session = connect(origin, { ...(ca === null ? {} : { ca: [...ca] }), settings: { enablePush: false } });
    this.#connectTimer = setTimeout(() => this.#onConnectTimeout(), connectTimeoutMs);
    this.#healthTimer = setInterval(() => this.#drainOrPing(), PING_AFTER_SILENCE_MS).unref();
    // The connection is used only after the other side's settings arrive: before, Node.js assumes no limit of parallel
    // requests.
    this.#session.on('remoteSettings', () => this.#onReady());
    this.#session.on('goaway', () => this.drain());
    // Each request in progress reports the failure itself, and the event `close` follows.
    this.#session.on('error', (error) => {
      this.#sessionError ??= error;
      this.drain();
    });
    this.#session.once('close', () => this.#onClosed());
  }

  /** True if the connection is closed: it has no requests and accepts none. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Whether the connection is still being opened. */
  get isOpening(): boolean {
    return !this.#hasConnected && !this.#isDraining;
  }

  /** True if the connection accepts no further requests. */
  get isDraining(): boolean {
    return this.#isDraining;
  }

  /** Why the connection could not be opened; null if it was opened, or still may be. */
  get connectFailure(): H2Failure | null {
    return this.#hasConnected || !this.#isDraining ? null : new H2Failure('connect', this.#sessionError);
  }

  /** True if the connection accepts another request now. */
  get hasCapacity(): boolean {
    if (!this.#hasConnected || this.#isDraining || this.#session.closed || this.#session.destroyed) return false;
    const allowed = this.#session.remoteSettings.maxConcurrentStreams ?? MAX_STREAMS;
    return this.#activeStreams < Math.min(MAX_STREAMS, allowed);
  }

  /**
   * Sends one POST; the caller must have checked `hasCapacity`. `headers`: alternating names and values, with `:path`;
   * Node.js would sort an object for each request. Rejects with an H2Failure, after `timeoutMs` at the latest.
   */
  request(headers: readonly string[], body: string, timeoutMs: number): Promise<H2Response> {
    this.#activeStreams += 1;
    this.#lastRequestMs = performance.now();
    return new Promise<H2Response>((resolve, reject) => {
      let stream: ClientHttp2Stream;
      try {
        stream = this.#session.request([...this.#commonHeaders, ...headers]);
      } catch (error) {
        // The session was closed, but its event `close` has not come yet.
        this.#releaseStream();
        reject(new H2Failure('lost', error));
        return;
      }
      const timer = setTimeout(() => {
        conclude(new H2Failure('timeout'));
        stream.close(constants.NGHTTP2_CANCEL);
        // The connection may have died silently: no further request must wait on it.
        this.drain();
      }, timeoutMs);
      let isSettled = false;
      const conclude = (outcome: H2Response | H2Failure): void => {
        if (isSettled) return;
        isSettled = true;
        clearTimeout(timer);
        this.#releaseStream();
        if (outcome instanceof H2Failure) reject(outcome);
        else resolve(outcome);
      };
      readResponse(stream, () => (this.#lastActivityMs = performance.now()), conclude);
      stream.end(body);
    });
  }

  /** Accepts no further requests. The connection is closed when those in progress have ended. */
  drain(): void {
    if (this.#isDraining) return;
    this.#isDraining = true;
    clearTimeout(this.#connectTimer);
    this.#destroyTimer = setTimeout(() => this.#session.destroy(), DRAIN_TIMEOUT_MS).unref();
    if (!this.#session.closed && !this.#session.destroyed) this.#session.close();
    this.#options.onCapacityChange();
  }

  /** Destroys the connection at once; requests in progress fail. */
  destroy(): void {
    this.#session.destroy();
  }

  #onConnectTimeout(): void {
    this.#sessionError = new DOMException('the connection took too long', 'TimeoutError');
    this.#session.destroy();
    this.drain();
  }

  #onReady(): void {
    clearTimeout(this.#connectTimer);
    this.#lastActivityMs = performance.now();
    this.#hasConnected = true;
    this.#options.onCapacityChange();
  }

  #releaseStream(): void {
    this.#activeStreams -= 1;
    this.#options.onCapacityChange();
  }

  #onClosed(): void {
    clearTimeout(this.#connectTimer);
    clearInterval(this.#healthTimer);
    clearTimeout(this.#pingTimer);
    clearTimeout(this.#destroyTimer);
    this.#isClosed = true;
    this.#isDraining = true;
    this.#options.onCapacityChange();
  }

  #drainOrPing(): void {
    const now = performance.now();
    if (now - this.#createdAtMs > MAX_CONNECTION_AGE_MS || now - this.#lastRequestMs > IDLE_TIMEOUT_MS) this.drain();
    else if (now - this.#lastActivityMs >= PING_AFTER_SILENCE_MS) this.ping();
  }

  /** Pings the other side; a connection that does not answer is destroyed. */
  ping(timeoutMs: number = PING_TIMEOUT_MS): void {
    if (this.#pingTimer !== undefined || this.#session.destroyed || !this.#hasConnected) return;
    this.#pingTimer = setTimeout(() => this.#session.destroy(), timeoutMs);
    this.#session.ping((error) => {
      clearTimeout(this.#pingTimer);
      this.#pingTimer = undefined;
      if (error === null) this.#lastActivityMs = performance.now();
    });
  }
}

/**
 * Reads the answer to a request. Calls `conclude` with it or with a failure, at least once; only the first call has an
 * effect.
 */
function readResponse(
  stream: ClientHttp2Stream,
  onActivity: () => void,
  conclude: (outcome: H2Response | H2Failure) => void,
): void {
  let status: number | null = null;
  let retryAfterMs: number | null = null;
  const chunks: Buffer[] = [];
  let receivedBytes = 0;
  let hasEnded = false;
  stream.on('response', (headers) => {
    onActivity();
    status = headers[':status'] ?? 0;
    retryAfterMs = parseBoundedRetryAfterMs(headers['retry-after']);
  });
  stream.on('data', (chunk: Buffer) => {
    receivedBytes += chunk.length;
    if (receivedBytes <= MAX_RESPONSE_BYTES) chunks.push(chunk);
    else {
      conclude(new H2Failure('answer'));
      stream.close(constants.NGHTTP2_CANCEL);
    }
  });
  stream.once('end', () => {
    if (status === null) return;
    hasEnded = true;
    const body = chunks.length === 0 ? '' : Buffer.concat(chunks).toString('utf8');
    conclude({ status, retryAfterMs, body });
  });
  stream.on('error', (cause) => conclude(new H2Failure('lost', cause)));
  // If the stream closes without an answer, the session ended during the request. After an answer no H2Failure is
  // created: that took 7 % of the time of a push.
  stream.once('close', () => {
    if (!hasEnded) conclude(new H2Failure('lost'));
  });
}
