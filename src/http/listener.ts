import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { HttpConfig } from '../config/config.ts';
import type { ConnectionLimit } from '../connection-limit.ts';
import { errorKinds } from '../errors.ts';
import { listen } from '../listen.ts';
import { isReceivingExemptBody, STALL_TIMEOUT_MS } from './deadline.ts';
import { jsonResponseHeaders } from './responses.ts';

/**
 * Interval at which Node looks for timed-out requests. With its default of 30 s, a time-out of 10 s could take 40 s.
 */
const TIMEOUT_CHECK_INTERVAL_MS = 1_000;
const KEEP_ALIVE_TIMEOUT_MS = 65_000;
/** The time for which the bytes of a refused client are read and discarded: closing at once could lose the answer. */
const LINGER_MS = 1_000;

/** The part of the configuration that a listener uses. */
type HttpListenConfig = Pick<HttpConfig, 'interface' | 'port' | 'requestToResponseTimeoutMs' | 'maxHeaderBytes'>;

type HttpSocket = Socket & { _httpMessage?: ServerResponse | null };

/** Takes over the socket of a request that asks for WebSocket; `head` has the bytes after the request. */
type UpgradeListener = (request: IncomingMessage, socket: Socket, head: Buffer) => void;

/**
 * The path of WebSocket. On other paths, `Upgrade` is ignored, as RFC 9110 allows: some clients send it with every
 * request.
 */
const LIVE_PATH = '/v1/live';

/** A TCP listener for HTTP with bounds on everything that arrives before a handler sees it. */
export class HttpListener {
  readonly #config: HttpListenConfig;
  readonly #addressConfigKeys: string;
  readonly #processConnectionLimit: ConnectionLimit;
  readonly #server: Server;
  #stopping: Promise<void> | null = null;
  readonly #rejectedSockets = new WeakSet<Socket>();
  readonly #httpSockets = new Set<HttpSocket>();
  /** Removes a closed connection from `#httpSockets`. All connections share this one function. */
  readonly #removeSocket: (this: Socket) => void;
  #handler: RequestListener;
  #upgradeListener: UpgradeListener | null = null;

  /** `configKeys`: the configuration keys of the address and the port, for error messages about them. */
  constructor(
    config: HttpListenConfig,
    startingHandler: RequestListener,
    { limit, keys: configKeys = 'http.interface, http.port' }: { limit: ConnectionLimit; keys?: string },
  ) {
    this.#config = config;
    this.#addressConfigKeys = configKeys;
    this.#processConnectionLimit = limit;
    this.#handler = startingHandler;
    const httpSockets = this.#httpSockets;
    this.#removeSocket = function (this: HttpSocket): void {
      httpSockets.delete(this);
    };
    const handler: RequestListener = (req, res) => this.#handler(req, res);
    this.#server = createServer(
      {
        connectionsCheckingInterval: TIMEOUT_CHECK_INTERVAL_MS,
        requestTimeout: config.requestToResponseTimeoutMs,
        headersTimeout: config.requestToResponseTimeoutMs,
        keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
        maxHeaderSize: config.maxHeaderBytes,
        noDelay: true,
        // app.ts refuses a request without Host instead: Node's own refusal has no body.
        requireHostHeader: false,
        shouldUpgradeCallback: (request) => this.#upgradeListener !== null && wantsWebSocket(request),
      },
      handler,
    );
    // The number of headers is not bounded: Node silently drops headers above the bound, and one of those could be the
    // Idempotency-Key. The size of all headers is bounded.
    this.#server.maxHeadersCount = 0;
    this.#server.timeout = STALL_TIMEOUT_MS;
    // A client that closes its side after its request, as `nc -N` does, still gets its answer.
    Reflect.set(this.#server, 'httpAllowHalfOpen', true);
    // The handler sends 100 Continue after it has checked the token. Other expectations may be ignored.
    this.#server.on('checkContinue', handler);
    this.#server.on('checkExpectation', handler);
    this.#server.on('connection', (socket: HttpSocket) => {
      this.#httpSockets.add(socket);
      socket.on('close', this.#removeSocket);
    });
    this.#server.on('upgrade', (request, socket: HttpSocket, head) => {
      // From here on the socket is no longer an HTTP connection.
      this.#httpSockets.delete(socket);
      socket.off('close', this.#removeSocket);
      this.#upgradeListener!(request, socket, head);
    });
    this.#server.on('clientError', (error, socket) => this.#rejectRequest(error, socket as HttpSocket));
  }

  /** Sets the handler that answers all further requests. */
  setHandler(handler: RequestListener): void {
    this.#handler = handler;
  }

  /** Sets the listener that takes the sockets of all further requests for WebSocket at `/v1/live`. */
  setUpgradeListener(upgrade: UpgradeListener): void {
    this.#upgradeListener = upgrade;
  }

  /** Connections that are open right now, without those that have become WebSockets. */
  get openHttpConnections(): number {
    return this.#httpSockets.size;
  }

  /** Resolves to the port once it is open. */
  async start(): Promise<number> {
    const { interface: host, port } = this.#config;
    return listen(this.#server, { host, port, keys: this.#addressConfigKeys, limit: this.#processConnectionLimit });
  }

  /**
   * Takes no further connections, lets running requests finish, and cuts the remaining connections after `timeoutMs`.
   */
  async stop(timeoutMs: number): Promise<void> {
    this.#stopping ??= this.#stop(timeoutMs);
    return this.#stopping;
  }

  async #stop(timeoutMs: number): Promise<void> {
    if (!this.#server.listening) return;
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    // After `close`, Node closes neither connections without a complete request nor those whose request was answered.
    // So they are closed here.
    for (const socket of this.#httpSockets) closeAfterResponse(socket);
    const timer = setTimeout(() => this.#server.closeAllConnections(), timeoutMs);
    await closed;
    clearTimeout(timer);
  }

  /** A request that Node's parser refuses, or that took too long, gets a JSON answer; then its connection is closed. */
  #rejectRequest(error: NodeJS.ErrnoException, socket: HttpSocket): void {
    // A file transfer may take longer than the time-out. Node reports the time-out once, and the request continues if
    // nobody closes its connection.
    if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT' && isReceivingExemptBody(socket)) return;
    if (!socket.writable || error.code === 'ECONNRESET') {
      socket.destroy();
      return;
    }
    // A parser that has failed fails again on all further bytes: only the first error is answered.
    if (this.#rejectedSockets.has(socket)) return;
    this.#rejectedSockets.add(socket);
    respondErrorInOrder(error, socket);
  }
}

function closeAfterResponse(socket: HttpSocket): void {
  const currentResponse = socket._httpMessage;
  if (currentResponse === undefined || currentResponse === null) {
    socket.destroy();
    return;
  }
  currentResponse.shouldKeepAlive = false;
  currentResponse.once('close', () => socket.destroySoon());
}

/** Answers a broken request after the complete ones before it: else a client would take the error for their answer. */
function respondErrorInOrder(error: NodeJS.ErrnoException, socket: HttpSocket): void {
  const currentResponse = socket._httpMessage;
  if (currentResponse?.req.complete === true && !currentResponse.destroyed) {
    currentResponse.once('close', () => respondErrorInOrder(error, socket));
    return;
  }
  // The answer to the broken request has partly been sent: an error would be read as the rest of its body.
  if (!socket.writable || currentResponse?.headersSent === true) {
    socket.destroy();
    return;
  }
  const [status, message] = errorStatusAndMessage(error.code);
  const body = JSON.stringify({ message });
  const headers = { connection: 'close', ...jsonResponseHeaders, 'content-length': Buffer.byteLength(body) };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status}\r\n${lines.join('')}\r\n${body}`);
  const timer = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once('end', () => socket.destroy());
  socket.once('close', () => clearTimeout(timer));
}

function wantsWebSocket({ url, headers }: IncomingMessage): boolean {
  const [path] = (url ?? '').split('?', 1);
  return (path === LIVE_PATH || path === `${LIVE_PATH}/`) && headers.upgrade?.toLowerCase() === 'websocket';
}

function errorStatusAndMessage(code: string | undefined): [string, string] {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return ['408 Request Timeout', errorKinds.request_timeout.sentence];
  if (code === 'HPE_HEADER_OVERFLOW')
    return ['431 Request Header Fields Too Large', 'The headers are larger than http.max-header-size allows'];
  return ['400 Bad Request', errorKinds.invalid_request.sentence];
}

/** The address of a listener, as people type it. */
export function httpUrl(host: string, port: number): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
}
