import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { setImmediate as nextTurn, setTimeout as wait } from 'node:timers/promises';
import type { Arrival, DeliveryKey, Moment } from './history.ts';
import type { ModelReceiver } from './model-receiver.ts';
import type { Random } from './random.ts';

/** Numbers all actions and arrivals in their order. */
export class LogicalClock {
  #last: Moment = 0;

  next(): Moment {
    this.#last += 1;
    return this.#last;
  }
}

/** How a hook's target answers deliveries. */
export type Behaviour = 'accepting' | 'failing' | 'refusing' | 'hanging up' | 'slow' | 'gone';

const FAILURES: readonly number[] = [500, 503, 429, 404];
const REFUSALS: readonly number[] = [400, 413, 422];
const MAX_SLOW_MS = 25;

/** The target of one hook, with all its arrivals. */
export class HookTarget {
  readonly arrivals: Arrival[] = [];
  behaviour: Behaviour = 'accepting';
  /** The hook's id, which its registration sets before the first delivery. */
  hook = 0;
  receiver: ModelReceiver | null = null;
  readonly path: string;
  readonly #random: Random;
  readonly #refused = new Map<DeliveryKey, boolean>();

  constructor(path: string, random: Random) {
    this.path = path;
    this.#random = random;
  }

  /** Resolves to the status of the answer; null: the target closes the connection without an answer. */
  async answer(keys: readonly DeliveryKey[]): Promise<number | null> {
    const random = this.#random;
    switch (this.behaviour) {
      case 'accepting':
        return 200;
      case 'failing':
        return random.chance(0.7) ? random.pick(FAILURES) : 204;
      case 'refusing':
        return keys.some((key) => this.#isRefused(key)) ? random.pick(REFUSALS) : 201;
      case 'hanging up':
        return random.chance(0.7) ? null : 200;
      case 'slow':
        await wait(random.between(0, MAX_SLOW_MS));
        return 200;
      case 'gone':
        return 410;
      default:
        throw new Error('there is no such behaviour');
    }
  }

  /** A receiver that cannot read a message refuses it at every attempt. So the decision for an item stays the same. */
  #isRefused(key: DeliveryKey): boolean {
    const isRefused = this.#refused.get(key) ?? this.#random.chance(0.3);
    this.#refused.set(key, isRefused);
    return isRefused;
  }
}

/** An HTTP server with the targets of all hooks. */
export class HookReceiver {
  readonly #clock: LogicalClock;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #targets = new Map<string, HookTarget>();

  private constructor(clock: LogicalClock) {
    this.#clock = clock;
    this.#server = createServer((req, res) => void this.#receive(req, res));
    this.#server.on('connection', (socket: Socket) => {
      this.#sockets.add(socket);
      socket.on('error', () => socket.destroy());
      socket.once('close', () => this.#sockets.delete(socket));
    });
  }

  static async start(clock: LogicalClock): Promise<HookReceiver> {
    const receiver = new HookReceiver(clock);
    receiver.#server.listen(0, '127.0.0.1');
    await once(receiver.#server, 'listening');
    return receiver;
  }

  urlOf({ path }: HookTarget): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}${path}`;
  }

  add(target: HookTarget): void {
    this.#targets.set(target.path, target);
  }

  /** Stops recording arrivals for this target: the record of its hook is complete. */
  remove({ path }: HookTarget): void {
    this.#targets.delete(path);
  }

  /** Resolves when the connections of an ended server are closed: all its requests have arrived by then. */
  async disconnected(): Promise<void> {
    // A connection that the kernel has accepted becomes a socket in the next turn of the event loop.
    await nextTurn();
    for (const socket of this.#sockets) {
      if (!socket.closed) await new Promise((resolve) => socket.once('close', resolve));
      await nextTurn();
    }
  }

  async stop(): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  async #receive(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of req) chunks.push(chunk as Buffer);
    } catch {
      // The server was killed while it sent the request, so the request does not count as an arrival.
      return;
    }
    const target = this.#targets.get(req.url!);
    if (target === undefined || target.receiver === null) {
      res.writeHead(503).end();
      return;
    }
    const raw = Buffer.concat(chunks).toString('utf8');
    const request = target.receiver.read(req.headers, raw);
    const { arrivals, hook } = target;
    const webhookId = String(req.headers['webhook-id']);
    const index = arrivals.push({
      ...request,
      hook,
      webhookId,
      arrived: this.#clock.next(),
      ended: Infinity,
      status: null,
    });
    // `closed` notes that the sender closed the connection before the answer.
    const closed = new AbortController();
    res.once('close', () => closed.abort());
    const status = await target.answer(request.items.map(({ key }) => key));
    const isAnswered = status !== null && !closed.signal.aborted;
    if (isAnswered && status < 300) target.receiver.accept(request);
    arrivals[index - 1] = { ...arrivals[index - 1]!, ended: this.#clock.next(), status: isAnswered ? status : null };
    if (isAnswered) res.writeHead(status).end();
    else req.socket.destroy();
  }
}
