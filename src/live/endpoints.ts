import { createServer as createHttpServer, type IncomingMessage, type RequestListener } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { createServer as createTcpServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import type { Config, EndpointConfig } from '../config/config.ts';
import type { EndpointTls } from '../config/endpoint-tls.ts';
import type { ConnectionLimit } from '../connection-limit.ts';
import { listen } from '../listen.ts';
import { sourceKey, type SourceKey } from '../model/source-key.ts';
import { ANONYMOUS_FRAME_BYTES } from '../operations/input-limits.ts';
import type { LiveSessions } from './live-sessions.ts';
import type { TrustedProxies } from '../model/trusted-proxies.ts';
import { TcpConnection } from './tcp-connection.ts';
import type { Upgrades } from './upgrades.ts';

/** How often Node looks for handshakes that took too long. */
const CHECK_MS = 1_000;

/** What listeners hand their connections to. */
export interface EndpointParts {
  readonly config: Config;
  readonly sessions: LiveSessions;
  readonly upgrades: Upgrades;
  readonly proxies: TrustedProxies;
  readonly limit: ConnectionLimit;
}

/** One listener of `endpoints`: WebSocket or lines, with TLS or without. */
export class Endpoint {
  readonly #endpoint: EndpointConfig;
  readonly #name: string;
  readonly #parts: EndpointParts;
  readonly #server: Server;
  /** Connections that are not sessions yet, by the client's address and port. */
  readonly #arriving = new Map<string, { readonly socket: Socket; readonly source: SourceKey }>();
  #port = 0;

  constructor(endpoint: EndpointConfig, tls: EndpointTls | null, parts: EndpointParts & { name: string }) {
    this.#endpoint = endpoint;
    this.#name = parts.name;
    this.#parts = parts;
    this.#server = endpoint.type === 'tcp' ? this.#lineServer(tls) : this.#webSocketServer(tls);
  }

  /** As clients on this machine write it; once started. */
  get url(): string {
    const { type, interface: host, tls } = this.#endpoint;
    const scheme = type === 'tcp' ? (tls === null ? 'tcp' : 'tls') : tls === null ? 'ws' : 'wss';
    return `${scheme}://${host.includes(':') ? `[${host}]` : host}:${this.#port}`;
  }

  get port(): number {
    return this.#port;
  }

  /** Rejects with ListenError. */
  async start(): Promise<void> {
    const { interface: host, port } = this.#endpoint;
    this.#port = await listen(this.#server, { host, port, keys: this.#name, limit: this.#parts.limit });
  }

  /** Takes no more connections; resolves when the last one is over. */
  async stop(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = new Promise((resolve) => this.#server.close(resolve));
    for (const { socket } of this.#arriving.values()) socket.destroy();
    await closed;
  }

  #lineServer(tls: EndpointTls | null): Server {
    const { authenticateWithinMs } = this.#parts.config.live;
    if (tls === null)
      return createTcpServer({ allowHalfOpen: true, noDelay: true }, (socket) => this.#openLine(socket));
    const options = { ...tls.files, allowHalfOpen: true, noDelay: true, handshakeTimeout: authenticateWithinMs };
    const server = createTlsServer(options, (socket) => this.#openLine(socket));
    // A handshake that takes too long is told and left open.
    server.on('tlsClientError', (_error, socket) => socket.destroy());
    server.on('connection', (socket: Socket) => this.#arrived(socket));
    return server;
  }

  #webSocketServer(tls: EndpointTls | null): Server {
    const { live, http } = this.#parts.config;
    const options = {
      connectionsCheckingInterval: CHECK_MS,
      requestTimeout: live.authenticateWithinMs,
      headersTimeout: live.authenticateWithinMs,
      maxHeaderSize: http.maxHeaderBytes,
      noDelay: true,
    };
    const secure = { ...options, ...tls?.files, handshakeTimeout: live.authenticateWithinMs };
    const server = tls === null ? createHttpServer(options, refuse) : createHttpsServer(secure, refuse);
    server.on('connection', (socket: Socket) => this.#arrived(socket));
    server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
      this.#release(nameOf(socket));
      this.#parts.upgrades.take(request, socket, head);
    });
    return server;
  }

  #openLine(socket: Socket): void {
    this.#release(nameOf(socket));
    const { sessions, proxies, config } = this.#parts;
    const { remoteAddress: address = '' } = socket;
    const source = sourceKey(address);
    const refusal = sessions.admission.enter(source, proxies.has(address));
    if (refusal !== null) {
      sessions.counts.refused[refusal] += 1;
      TcpConnection.refuse(socket, 'tooMany');
      return;
    }
    const connection = new TcpConnection(socket, {
      source,
      maxFrameBytes: Math.min(ANONYMOUS_FRAME_BYTES, config.live.maxFrameBytes),
    });
    connection.open(sessions.open(connection));
  }

  /** A connection that has to get through a handshake first counts as one that has not said who it is. */
  #arrived(socket: Socket): void {
    const { sessions, proxies } = this.#parts;
    const { remoteAddress: address = '' } = socket;
    const source = sourceKey(address);
    const refusal = sessions.admission.enter(source, proxies.has(address));
    if (refusal !== null) {
      sessions.counts.refused[refusal] += 1;
      socket.destroy();
      return;
    }
    const name = nameOf(socket);
    this.#arriving.set(name, { socket, source });
    socket.once('close', () => this.#release(name));
  }

  #release(name: string): void {
    const arrived = this.#arriving.get(name);
    if (arrived === undefined) return;
    this.#arriving.delete(name);
    const { admission } = this.#parts.sessions;
    admission.settled(arrived.source);
    admission.leave();
  }
}

/** The same for a socket and for the one that its TLS runs on. */
function nameOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress ?? ''} ${remotePort}`;
}

/** Requests that do not ask for WebSocket. */
const refuse: RequestListener = (_request, response) => {
  const body = JSON.stringify({ message: 'This port speaks WebSocket' });
  response.writeHead(426, {
    connection: 'close, upgrade',
    upgrade: 'websocket',
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(body),
  });
  response.end(body);
};
