import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { finished } from 'node:stream/promises';
import type { HttpConfig } from '../config/config.ts';
import { errorKinds } from '../errors.ts';

/** Node looks for requests that took too long this often; its default of 30 s would make 10 s into 40. */
const CHECK_MS = 1_000;
const MAX_HEADERS = 200;
const KEEP_ALIVE_MS = 65_000;

/** The port cannot be listened on; the message says which and what to do. */
export class ListenError extends Error {
  override readonly name = 'ListenError';
}

/** A TCP listener for HTTP with bounds on everything that arrives before a handler sees it. */
export class HttpListener {
  readonly #config: HttpConfig;
  readonly #server: Server;
  #stopping: Promise<void> | null = null;

  constructor(config: HttpConfig, handler: RequestListener) {
    this.#config = config;
    this.#server = createServer(
      {
        connectionsCheckingInterval: CHECK_MS,
        requestTimeout: config.requestTimeoutMs,
        headersTimeout: config.requestTimeoutMs,
        keepAliveTimeout: KEEP_ALIVE_MS,
        maxHeaderSize: config.maxHeaderBytes,
        noDelay: true,
      },
      handler,
    );
    this.#server.maxHeadersCount = MAX_HEADERS;
    this.#server.on('clientError', answerBrokenRequest);
  }

  /** Resolves to the port once it is open. */
  async start(): Promise<number> {
    const { interface: host, port } = this.#config;
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', (error: NodeJS.ErrnoException) => reject(explain(error, host, port)));
      this.#server.listen({ host, port, backlog: 1_024 }, resolve);
    });
    return (this.#server.address() as AddressInfo).port;
  }

  /** Takes no more connections, lets requests in hand finish, and cuts what is left after `timeoutMs`. */
  async stop(timeoutMs: number): Promise<void> {
    this.#stopping ??= this.#stop(timeoutMs);
    return this.#stopping;
  }

  async #stop(timeoutMs: number): Promise<void> {
    if (!this.#server.listening) return;
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeIdleConnections();
    const timer = setTimeout(() => this.#server.closeAllConnections(), timeoutMs);
    await closed;
    clearTimeout(timer);
  }
}

function explain(error: NodeJS.ErrnoException, host: string, port: number): Error {
  const place = `${host}:${port} (http.interface, http.port)`;
  if (error.code === 'EADDRINUSE')
    return new ListenError(`another program listens on ${place}: stop it or choose another port`);
  if (error.code === 'EACCES')
    return new ListenError(`listening on ${place} needs more rights: choose a port above 1023`);
  if (error.code === 'EADDRNOTAVAIL') return new ListenError(`this machine has no address ${place}`);
  return new ListenError(`cannot listen on ${place}: ${error.message}`);
}

/** What Node's parser refuses, or what took too long, gets a JSON answer like everything else. */
function answerBrokenRequest(
  error: NodeJS.ErrnoException,
  socket: Socket & { _httpMessage?: { headersSent: boolean } },
): void {
  // Something of an answer is on its way already: another one would be read as its body.
  if (!socket.writable || error.code === 'ECONNRESET' || socket._httpMessage?.headersSent === true) {
    socket.destroy();
    return;
  }
  const [status, message] = brokenRequest(error.code);
  const body = JSON.stringify({ message });
  socket.end(
    `HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-type: application/json; charset=utf-8\r\n` +
      `content-length: ${Buffer.byteLength(body)}\r\ncache-control: no-store\r\n\r\n${body}`,
  );
  // A sender that never reads must not keep the socket.
  finished(socket, { readable: false })
    .catch(() => {})
    .finally(() => socket.destroy());
}

function brokenRequest(code: string | undefined): [string, string] {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return ['408 Request Timeout', errorKinds.request_timeout.sentence];
  if (code === 'HPE_HEADER_OVERFLOW')
    return ['431 Request Header Fields Too Large', 'The headers are larger than http.max-header allows'];
  return ['400 Bad Request', 'This is not a request that HTTP/1.1 allows'];
}
