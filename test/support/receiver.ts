import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';

/** One delivery as it arrived. */
export interface Arrival {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly raw: string;
  /** The parsed JSON, or the fields of a form. */
  readonly body: any; // oxlint-disable-line typescript/no-explicit-any -- tests look into it freely
}

/** Answers one delivery: returns a status, or answers by itself through `res`. */
export type Answerer = (arrival: Arrival, res: ServerResponse) => number | void | Promise<number | void>;

interface Waiter {
  readonly count: number;
  readonly resolve: (arrivals: readonly Arrival[]) => void;
}

/** A receiver of deliveries on loopback. It answers 200 by default. */
export class Receiver {
  readonly arrivals: Arrival[] = [];
  answer: Answerer = () => 200;
  readonly #server: Server;
  #waiters: Waiter[] = [];

  private constructor(server: Server) {
    this.#server = server;
  }

  static async start(answer?: Answerer, port = 0): Promise<Receiver> {
    const server = createServer();
    const receiver = new Receiver(server);
    if (answer !== undefined) receiver.answer = answer;
    server.on('request', (req, res) => void receiver.#receive(req, res));
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    server.once('error', reject).listen(port, '127.0.0.1', resolve);
    await promise;
    return receiver;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  url(path = '/hook'): string {
    return `http://127.0.0.1:${this.port}${path}`;
  }

  /** Resolves once this many deliveries have arrived in total. */
  received(count: number): Promise<readonly Arrival[]> {
    if (this.arrivals.length >= count) return Promise.resolve(this.arrivals);
    return new Promise((resolve) => this.#waiters.push({ count, resolve }));
  }

  /** The seqs of the messages in the order of their arrival, of all paths or of one. */
  seqs(path?: string): number[] {
    return this.arrivals
      .filter((a) => path === undefined || a.path === path)
      .map((a) => a.body.data.message.seq as number);
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #receive(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of req) chunks.push(chunk as Buffer);
    } catch {
      // The sender was killed during the request, which is then not recorded as an arrival.
      return;
    }
    const raw = Buffer.concat(chunks).toString('utf8');
    const arrival: Arrival = { path: req.url!, headers: req.headers, raw, body: bodyOf(req.headers, raw) };
    this.arrivals.push(arrival);
    this.#waiters = this.#waiters.filter((waiter) => {
      if (this.arrivals.length < waiter.count) return true;
      waiter.resolve(this.arrivals);
      return false;
    });
    const status = await this.answer(arrival, res);
    if (typeof status === 'number') res.writeHead(status).end();
  }
}

function bodyOf(headers: IncomingHttpHeaders, raw: string): unknown {
  const isForm = headers['content-type'] === 'application/x-www-form-urlencoded';
  return isForm ? Object.fromEntries(new URLSearchParams(raw)) : JSON.parse(raw);
}
