import { once } from 'node:events';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';

/** One request as it was received. */
export interface ReceivedRequest {
  readonly head: string;
  readonly body: string;
  /** The number of the request on its connection, from 1 on. */
  readonly nth: number;
  /** The number of the connection to the receiver, from 1 on. */
  readonly connection: number;
}

/** Reacts to a complete request by writing raw bytes. */
export type OnRequest = (socket: Socket, request: ReceivedRequest) => void;

/** An answer that keeps the connection open. */
export const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok';

/** A receiver of webhooks over raw sockets, so that it can answer with any bytes at any moment. */
export class Receiver {
  readonly requests: ReceivedRequest[] = [];
  readonly sockets = new Set<Socket>();
  connections = 0;
  mostSockets = 0;
  /** Called with each new connection, before its first byte. */
  onConnection: (socket: Socket) => void = () => {};
  readonly #server: Server;
  readonly #onRequest: OnRequest;
  readonly #tls: boolean;

  private constructor(onRequest: OnRequest, tls?: { key: string; cert: string }) {
    this.#onRequest = onRequest;
    this.#tls = tls !== undefined;
    this.#server = tls ? createTlsServer(tls, (socket) => this.#accept(socket)) : createServer((s) => this.#accept(s));
  }

  /** Starts a receiver on a free port of 127.0.0.1, unless `endpoint` is given. */
  static async start(
    onRequest: OnRequest,
    tls?: { key: string; cert: string },
    endpoint = { host: '127.0.0.1', port: 0 },
  ): Promise<Receiver> {
    const receiver = new Receiver(onRequest, tls);
    receiver.#server.listen(endpoint);
    await once(receiver.#server, 'listening');
    return receiver;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** The URL of this receiver, with any spelling of its host. */
  url(host = '127.0.0.1', path = '/secret-path?secret=query'): string {
    return `http${this.#tls ? 's' : ''}://${host}:${this.port}${path}`;
  }

  /** Calls `callback` for each TCP connection, before TLS begins. */
  onRawConnection(callback: () => void): void {
    this.#server.on('connection', callback);
  }

  /** Resolves when no connection is open. */
  async allClosed(): Promise<void> {
    await Promise.all(Array.from(this.sockets, (socket) => new Promise((resolve) => socket.once('close', resolve))));
  }

  async stop(): Promise<void> {
    this.#server.close();
    for (const socket of this.sockets) socket.destroy();
    await once(this.#server, 'close');
  }

  #accept(socket: Socket): void {
    this.connections += 1;
    const connection = this.connections;
    let nth = 0;
    let received = '';
    this.sockets.add(socket);
    this.mostSockets = Math.max(this.mostSockets, this.sockets.size);
    socket.on('error', () => socket.destroy());
    socket.on('close', () => this.sockets.delete(socket));
    this.onConnection(socket);
    socket.setEncoding('latin1').on('data', (chunk) => {
      received += chunk;
      const end = received.indexOf('\r\n\r\n');
      const length = Number(/content-length: (\d+)/i.exec(received)?.[1] ?? 0);
      if (end < 0 || received.length < end + 4 + length) return;
      nth += 1;
      const request = { head: received.slice(0, end), body: received.slice(end + 4), nth, connection };
      received = '';
      this.requests.push(request);
      this.#onRequest(socket, request);
    });
  }
}
