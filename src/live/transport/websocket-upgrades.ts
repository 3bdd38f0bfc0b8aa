import { STATUS_CODES, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { WebSocketServer } from 'ws';
import type { Config } from '../../config/config.ts';
import { sourceKey, type SourceKey } from '../../model/source-key.ts';
import { MAX_ANONYMOUS_FRAME_BYTES } from '../../operations/core/input-limits.ts';
import { klatchCookiesIn, type KlatchCookie } from '../../operations/core/session-cookie.ts';
import type { LiveSessions } from '../live-sessions.ts';
import type { ConnectionRejection } from '../live-counts.ts';
import type { TrustedProxies } from '../../model/trusted-proxies.ts';
import { ClientSocket, WebSocketConnection } from './websocket-connection.ts';

/** The most time that the client's half of the closing handshake may take. */
const CLOSE_TIMEOUT_MS = 10_000;
const MAX_FRAGMENTS = 1_024;
const NO_COOKIES: readonly KlatchCookie[] = [];

const REJECTION_RESPONSES: Readonly<Record<ConnectionRejection, readonly [status: number, sentence: string]>> = {
  too_many_connections: [503, 'There are too many connections; please try again later'],
  too_many_unauthenticated: [503, 'Too many connections have not said who they are; please try again later'],
  too_many_from_source: [503, 'Too many connections from your network have not said who they are'],
  stopping: [503, 'The server is stopping; please try again'],
  origin: [403, 'Web pages of this origin may not connect: live.origins lists those that may'],
};

/** Turns an HTTP request that asks for WebSocket into a session. */
export class WebSocketUpgrades {
  readonly #sessions: LiveSessions;
  readonly #proxies: TrustedProxies;
  readonly #server: WebSocketServer;
  readonly #ownOrigin: string;
  readonly #allowedOrigins: ReadonlySet<string>;
  #isStopping = false;

  constructor(config: Config, sessions: LiveSessions, proxies: TrustedProxies) {
    this.#sessions = sessions;
    this.#proxies = proxies;
    this.#ownOrigin = new URL(config.http.baseUri).origin;
    this.#allowedOrigins = new Set([this.#ownOrigin, ...config.live.allowedLiveOrigins]);
    // The types lack some of the library's options, and do not show that it takes a class of ours.
    const options: Record<string, unknown> = {
      noServer: true,
      clientTracking: false,
      perMessageDeflate: false,
      maxPayload: Math.min(MAX_ANONYMOUS_FRAME_BYTES, config.live.maxFrameBytes),
      maxFragments: MAX_FRAGMENTS,
      closeTimeout: CLOSE_TIMEOUT_MS,
      WebSocket: ClientSocket,
    };
    this.#server = new WebSocketServer(options);
  }

  /** Refuses all further requests. */
  stop(): void {
    this.#isStopping = true;
  }

  /** Takes over a request's socket: opens a session on the socket, or refuses the request. */
  handle(request: IncomingMessage, socket: Socket, head: Buffer): void {
    socket.on('error', ignoreError);
    const address = this.#proxies.clientAddress(request);
    const source = sourceKey(address);
    const rejection = this.#acquireOrReject(request, source, this.#proxies.isTrustedProxy(address));
    if (rejection !== null) {
      this.#sessions.counts.rejected[rejection] += 1;
      rejectUpgrade(socket, rejection);
      return;
    }
    let isUpgraded = false;
    this.#server.handleUpgrade(request, socket, head, (client) => {
      isUpgraded = true;
      // The library has attached its own listener for errors by now.
      socket.off('error', ignoreError);
      const handshakeCookies = this.#ownPageCookies(request);
      const connection = new WebSocketConnection(client as ClientSocket, socket, { source, handshakeCookies });
      connection.open(this.#sessions.open(connection));
    });
    // The library refused the handshake and has answered.
    if (!isUpgraded) {
      this.#sessions.quotas.releaseUnauthenticated(source);
      this.#sessions.quotas.release();
    }
  }

  /**
   * The cookies of a request from a page of the server's own origin; none for other pages. Browsers send cookies with
   * the handshake of any page of the same site. `live.origins` lets pages of other origins connect, but not act as a
   * visitor.
   */
  #ownPageCookies({ headers }: IncomingMessage): readonly KlatchCookie[] {
    return headers.origin === this.#ownOrigin ? klatchCookiesIn(headers.cookie) : NO_COOKIES;
  }

  #acquireOrReject(request: IncomingMessage, source: SourceKey, isProxy: boolean): ConnectionRejection | null {
    if (this.#isStopping) return 'stopping';
    const { origin } = request.headers;
    if (origin !== undefined && !this.#allowedOrigins.has('*') && !this.#allowedOrigins.has(origin)) return 'origin';
    return this.#sessions.quotas.acquire(source, isProxy);
  }
}

function rejectUpgrade(socket: Socket, rejection: ConnectionRejection): void {
  const [status, message] = REJECTION_RESPONSES[rejection];
  const body = JSON.stringify({ message });
  const responseLines = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'Connection: close',
    'Content-Type: application/json; charset=utf-8',
    'Cache-Control: no-store',
    ...(status === 503 ? ['Retry-After: 5'] : []),
    `Content-Length: ${Buffer.byteLength(body)}`,
  ];
  socket.once('finish', () => socket.destroy());
  socket.end(`${responseLines.join('\r\n')}\r\n\r\n${body}`);
}

function ignoreError(): void {}
