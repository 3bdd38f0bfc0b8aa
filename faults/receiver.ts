import { once } from 'node:events';
import { createServer as createHttpServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createHttpsServer, type Server as SecureServer } from 'node:https';
import type { Socket } from 'node:net';
import type { SecureContextOptions } from 'node:tls';
import { freePort } from '../test/support/ports.ts';
import type { Delivery, Recorder } from './recorder.ts';

/** One delivery that waits for its answer. */
export interface Call {
  readonly delivery: Delivery;
  readonly res: ServerResponse;
  /** The connection of the request, for answers that are not HTTP. */
  readonly socket: Socket;
  /** Counts the delivery as accepted. Call it before the answer that acknowledges it. */
  readonly take: () => void;
}

/** A way to answer a delivery. */
export type Behaviour = (call: Call) => void;

export const take: Behaviour = ({ take, res }) => {
  take();
  res.writeHead(200).end();
};

/** Refuses each delivery with this status. */
export function refuse(status: number, headers: Record<string, string> = {}): Behaviour {
  return ({ delivery, res }) => {
    delivery.hook.refused += 1;
    res.writeHead(status, headers).end();
  };
}

/** A receiver of deliveries on loopback that can fail in every way. It listens on the same port after each failure. */
export class Receiver {
  behave: Behaviour = take;
  /** The number of connections that were ever opened. */
  connections = 0;
  readonly #recorder: Recorder;
  readonly #host: string;
  readonly #server: Server | SecureServer;
  readonly #isSecure: boolean;
  readonly #sockets = new Set<Socket>();
  #port = 0;

  private constructor(recorder: Recorder, options: { host: string; tls: SecureContextOptions | null }) {
    this.#recorder = recorder;
    this.#host = options.host;
    this.#isSecure = options.tls !== null;
    const onRequest = (req: IncomingMessage, res: ServerResponse): void => void this.#receive(req, res);
    this.#server = options.tls === null ? createHttpServer(onRequest) : createHttpsServer(options.tls, onRequest);
    this.#server.on('connection', (socket: Socket) => {
      this.connections += 1;
      this.#sockets.add(socket);
      socket.on('error', () => socket.destroy());
      socket.once('close', () => this.#sockets.delete(socket));
    });
  }

  static async start(
    recorder: Recorder,
    { host = '127.0.0.1', port = 0, tls = null as SecureContextOptions | null } = {},
  ): Promise<Receiver> {
    const receiver = new Receiver(recorder, { host, tls });
    // The port is a fixed number and not 0, because the receiver closes it at times and opens the same one again.
    receiver.#port = port === 0 ? await freePort() : port;
    await receiver.up();
    return receiver;
  }

  get port(): number {
    return this.#port;
  }

  /** The URL of a path, with the address of the receiver or with `host`. */
  url(path: string, host = this.#host): string {
    return `http${this.#isSecure ? 's' : ''}://${host}:${this.#port}${path}`;
  }

  /** Presents another certificate to new connections. */
  show(tls: SecureContextOptions): void {
    (this.#server as SecureServer).setSecureContext(tls);
  }

  /** Closes every connection. New ones are still accepted. */
  hangUp(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Closes the port and every connection. */
  async down(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.hangUp();
    await closed;
  }

  async up(): Promise<void> {
    this.#server.listen(this.#port, this.#host);
    await once(this.#server, 'listening');
  }

  async #receive(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of req) chunks.push(chunk as Buffer);
    } catch {
      // The server was killed while it sent the request, so the request does not count as an arrival.
      return;
    }
    const delivery = this.#recorder.arrived(req.url!, req.headers, Buffer.concat(chunks).toString('utf8'));
    if (delivery === null) {
      res.writeHead(404).end();
      return;
    }
    this.behave({ delivery, res, socket: req.socket, take: () => delivery.hook.take(delivery) });
  }
}
