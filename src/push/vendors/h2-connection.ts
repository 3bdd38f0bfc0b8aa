import { connect, constants, type ClientHttp2Session, type ClientHttp2Stream } from 'node:http2';
import { parseBoundedRetryAfterMs } from '../outcomes.ts';

/** An answer as far as it was read. */
export interface H2Response {
  readonly status: number;
  readonly retryAfterMs: number | null;
  readonly body: string;
}

/**
 * Why there is no answer. `connect`: no connection could be opened. `lost`: it ended under the request. `busy`: too many
 * wait for room. `stopped`: by us.
 */
type H2FailureReason = 'connect' | 'lost' | 'timeout' | 'answer' | 'busy' | 'stopped';

/** A request without an answer. */
export class H2Failure extends Error {
  override readonly name = 'H2Failure';
  readonly reason: H2FailureReason;

  constructor(reason: H2FailureReason, cause?: unknown) {
    super(`no answer: ${reason}`, { cause });
    this.reason = reason;
  }
}

/** Bounds of a connection; `onChange` is called whenever it takes more or fewer requests than before. */
interface H2ConnectionOptions {
  readonly ca: readonly string[] | null;
  readonly connectTimeoutMs: number;
  readonly onCapacityChange: () => void;
}

/** Requests at once on one connection, whatever the other side allows. */
const MAX_STREAMS = 500;
/** The answers of push services are short. */
const MAX_RESPONSE_BYTES = 16 * 1024;
/** A connection that was silent so long is asked whether it lives, and so long it has to answer. */
const PING_AFTER_SILENCE_MS = 30_000;
const PING_TIMEOUT_MS = 5_000;
/** A connection is replaced after this: names are looked up anew, and load balancers meet all of their servers. */
const MAX_CONNECTION_AGE_MS = 60 * 60_000;
/** Requests end long before; what is left then is a connection that cannot even be closed. */
const DRAIN_TIMEOUT_MS = 90_000;
/** One that is not used is closed, so that nothing is held for an app that hardly anybody has. */
const IDLE_TIMEOUT_MS = 15 * 60_000;

/** A connection over HTTP/2 that carries many requests at once, and says when it takes no more. */
export class H2Connection {
  readonly #session: ClientHttp2Session;
  /** What every request begins with. */
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
    // Until the other side has said how many requests it takes at once, node believes that there is no bound.
    this.#session.on('remoteSettings', () => this.#onReady());
    this.#session.on('goaway', () => this.drain());
    // What failed shows at each of its requests; `close` follows.
    this.#session.on('error', (error) => {
      this.#sessionError ??= error;
      this.drain();
    });
    this.#session.once('close', () => this.#onClosed());
  }

  /** Whether its end has come: requests are neither under way nor taken. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Whether it is still being opened. */
  get isOpening(): boolean {
    return !this.#hasConnected && !this.#isDraining;
  }

  /** Whether it takes no more requests. */
  get isDraining(): boolean {
    return this.#isDraining;
  }

  /** Why it could not be opened; null where it was, or still may be. */
  get connectFailure(): H2Failure | null {
    return this.#hasConnected || !this.#isDraining ? null : new H2Failure('connect', this.#sessionError);
  }

  /** Whether it takes another request now. */
  get hasCapacity(): boolean {
    if (!this.#hasConnected || this.#isDraining || this.#session.closed || this.#session.destroyed) return false;
    const allowed = this.#session.remoteSettings.maxConcurrentStreams ?? MAX_STREAMS;
    return this.#activeStreams < Math.min(MAX_STREAMS, allowed);
  }

  /**
   * Sends one POST where there is room. `headers`: names and values in turn, `:path` among them; as an object they would
   * be put in order for each request anew. Rejects with an H2Failure, after `timeoutMs` at latest.
   */
  request(headers: readonly string[], body: string, timeoutMs: number): Promise<H2Response> {
    this.#activeStreams += 1;
    this.#lastRequestMs = performance.now();
    return new Promise<H2Response>((resolve, reject) => {
      let stream: ClientHttp2Stream;
      try {
        stream = this.#session.request([...this.#commonHeaders, ...headers]);
      } catch (error) {
        // The session closed in this very turn.
        this.#releaseStream();
        reject(new H2Failure('lost', error));
        return;
      }
      const timer = setTimeout(() => {
        conclude(new H2Failure('timeout'));
        stream.close(constants.NGHTTP2_CANCEL);
        // A connection that has died without a word must not take the time of the next ones.
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

  /** Takes no more requests; those under way are finished, then it is closed. */
  drain(): void {
    if (this.#isDraining) return;
    this.#isDraining = true;
    clearTimeout(this.#connectTimer);
    this.#destroyTimer = setTimeout(() => this.#session.destroy(), DRAIN_TIMEOUT_MS).unref();
    if (!this.#session.closed && !this.#session.destroyed) this.#session.close();
    this.#options.onCapacityChange();
  }

  /** Ends it at once; what is under way fails. */
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

  /** Asks whether the other side is there; a connection that does not answer is destroyed. */
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

/** `conclude` is called at least once; what comes first counts. */
function readResponse(
  stream: ClientHttp2Stream,
  onActivity: () => void,
  conclude: (outcome: H2Response | H2Failure) => void,
): void {
  let status: number | null = null;
  let retryAfterMs: number | null = null;
  const chunks: Buffer[] = [];
  let bytes = 0;
  let hasEnded = false;
  stream.on('response', (headers) => {
    onActivity();
    status = headers[':status'] ?? 0;
    retryAfterMs = parseBoundedRetryAfterMs(headers['retry-after']);
  });
  stream.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes <= MAX_RESPONSE_BYTES) chunks.push(chunk);
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
  // Neither an answer nor an error: the session went away under it. An error that nobody needs took 7 % of a push.
  stream.once('close', () => {
    if (!hasEnded) conclude(new H2Failure('lost'));
  });
}
