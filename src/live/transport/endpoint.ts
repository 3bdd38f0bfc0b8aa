import { createServer as createHttpServer, type IncomingMessage, type RequestListener } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { createServer as createTcpServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import type { Config, EndpointConfig } from '../../config/config.ts';
import type { EndpointTls } from '../../config/endpoint-tls.ts';
import type { ConnectionLimit } from '../../connection-limit.ts';
import { listen } from '../../listen.ts';
import { sourceKey, type SourceKey } from '../../model/source-key.ts';
import { MAX_ANONYMOUS_FRAME_BYTES } from '../../operations/core/input-limits.ts';
import type { LiveSessions } from '../live-sessions.ts';
import { liveTransportSchemes, type LiveTransport } from '../../model/transport.ts';
import type { TrustedProxies } from '../../model/trusted-proxies.ts';
import { TcpConnection } from './tcp-connection.ts';
import type { WebSocketUpgrades } from './websocket-upgrades.ts';

/** The interval at which Node.js looks for handshakes that took too long. */
const TIMEOUT_CHECK_INTERVAL_MS = 1_000;

/** The parts that listeners use for their connections. */
interface EndpointDeps {
  readonly config: Config;
  readonly sessions: LiveSessions;
  readonly upgrades: WebSocketUpgrades;
  readonly proxies: TrustedProxies;
  readonly limit: ConnectionLimit;
}

/** One listener of the setting `endpoints`, for WebSocket or for lines on TCP, with TLS or without. */
export class Endpoint {
  readonly #endpoint: EndpointConfig;
  readonly #configKey: string;
  readonly #deps: EndpointDeps;
  readonly #server: Server;
  /** Connections that are not sessions yet, by the client's address and port. */
  readonly #socketsHoldingPreSessionQuota = new Map<string, { readonly socket: Socket; readonly source: SourceKey }>();
  #port = 0;

  constructor(endpoint: EndpointConfig, tls: EndpointTls | null, deps: EndpointDeps & { configKey: string }) {
    this.#endpoint = endpoint;
    this.#configKey = deps.configKey;
    this.#deps = deps;
    const serverFactories: Readonly<Record<LiveTransport, () => Server>> = {
      websocket: () => this.#createWebSocketListener(tls),
      tcp: () => this.#createTcpListener(tls),
    };
    this.#server = serverFactories[endpoint.type]();
  }

  /** The URL as clients on this machine write it; available once started. */
  get url(): string {
    const { type, interface: host, tls } = this.#endpoint;
    const scheme = liveTransportSchemes[type][tls === null ? 'plain' : 'tls'];
    return `${scheme}://${host.includes(':') ? `[${host}]` : host}:${this.#port}`;
  }

  get port(): number {
    return this.#port;
  }

  /** Rejects with ListenError if the server cannot listen on the address and port. */
  async start(): Promise<void> {
    const { interface: host, port } = this.#endpoint;
    this.#port = await listen(this.#server, { host, port, keys: this.#configKey, limit: this.#deps.limit });
  }

  /** Refuses new connections; resolves when the last one has ended. */
  async stop(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = new Promise((resolve) => this.#server.close(resolve));
    for (const { socket } of this.#socketsHoldingPreSessionQuota.values()) socket.destroy();
    await closed;
  }

  #createTcpListener(tls: EndpointTls | null): Server {
    const { authTimeoutMs } = this.#deps.config.live;
    if (tls === null)
      return createTcpServer({ allowHalfOpen: true, noDelay: true }, (socket) => this.#acceptTcp(socket));
    const options = { ...tls.pem, allowHalfOpen: true, noDelay: true, handshakeTimeout: authTimeoutMs };
    const server = createTlsServer(options, (socket) => this.#acceptTcp(socket));
    // Node.js reports a TLS handshake that takes too long, but leaves the socket open.
    server.on('tlsClientError', (_error, socket) => socket.destroy());
    server.on('connection', (socket: Socket) => this.#acquirePreSessionQuota(socket));
    return server;
  }

  #createWebSocketListener(tls: EndpointTls | null): Server {
    const { live, http } = this.#deps.config;
    const options = {
      connectionsCheckingInterval: TIMEOUT_CHECK_INTERVAL_MS,
      requestTimeout: live.authTimeoutMs,
      headersTimeout: live.authTimeoutMs,
      maxHeaderSize: http.maxHeaderBytes,
      noDelay: true,
    };
    const tlsOptions = { ...options, ...tls?.pem, handshakeTimeout: live.authTimeoutMs };
    const server =
      tls === null
        ? createHttpServer(options, respondUpgradeRequired)
        : createHttpsServer(tlsOptions, respondUpgradeRequired);
    server.on('connection', (socket: Socket) => this.#acquirePreSessionQuota(socket));
    server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
      this.#releasePreSessionQuota(addressKey(socket));
      this.#deps.upgrades.handle(request, socket, head);
    });
    return server;
  }

  #acceptTcp(socket: Socket): void {
    this.#releasePreSessionQuota(addressKey(socket));
    const { sessions, proxies, config } = this.#deps;
    const { remoteAddress: address = '' } = socket;
    const source = sourceKey(address);
    const rejection = sessions.quotas.acquire(source, proxies.isTrustedProxy(address));
    if (rejection !== null) {
      sessions.counts.rejected[rejection] += 1;
      TcpConnection.refuse(socket, 'too_many_connections');
      return;
    }
    const connection = new TcpConnection(socket, {
      source,
      maxFrameBytes: Math.min(MAX_ANONYMOUS_FRAME_BYTES, config.live.maxFrameBytes),
    });
    connection.open(sessions.open(connection));
  }

  /** Counts a connection that still has to complete a handshake as a connection that has not signed in. */
  #acquirePreSessionQuota(socket: Socket): void {
    const { sessions, proxies } = this.#deps;
    const { remoteAddress: address = '' } = socket;
    const source = sourceKey(address);
    const rejection = sessions.quotas.acquire(source, proxies.isTrustedProxy(address));
    if (rejection !== null) {
      sessions.counts.rejected[rejection] += 1;
      socket.destroy();
      return;
    }
    const socketKey = addressKey(socket);
    this.#socketsHoldingPreSessionQuota.set(socketKey, { socket, source });
    socket.once('close', () => this.#releasePreSessionQuota(socketKey));
  }

  #releasePreSessionQuota(socketKey: string): void {
    const socketAndSource = this.#socketsHoldingPreSessionQuota.get(socketKey);
    if (socketAndSource === undefined) return;
    this.#socketsHoldingPreSessionQuota.delete(socketKey);
    const { quotas } = this.#deps.sessions;
    quotas.releaseUnauthenticated(socketAndSource.source);
    quotas.release();
  }
}

/** The key of a socket. A TLS socket and the TCP socket that it runs on have the same key. */
function addressKey({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress ?? ''} ${remotePort}`;
}

/** Answers requests that do not ask for WebSocket. */
const respondUpgradeRequired: RequestListener = (_request, response) => {
  const body = JSON.stringify({ message: 'This port speaks WebSocket' });
  response.writeHead(426, {
    connection: 'close, upgrade',
    upgrade: 'websocket',
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(body),
  });
  response.end(body);
};
