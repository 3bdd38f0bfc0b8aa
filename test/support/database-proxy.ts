import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { freePort } from './ports.ts';

/** The folder of the real server's socket, and the port in the socket's name. */
export interface DatabasePlace {
  readonly host: string;
  readonly port: number;
}

interface Pair {
  /** The connection from the Klatch server under test. */
  readonly client: Socket;
  /** The connection to PostgreSQL. */
  readonly upstream: Socket;
}

/** The direction in which the proxy holds bytes back: queries to the database, its answers, or both. */
export type Hold = 'none' | 'questions' | 'answers' | 'both';

/** A TCP proxy in front of the test's PostgreSQL that can refuse, cut, and hold back, as a network does. */
export class DatabaseProxy {
  readonly #target: DatabasePlace;
  readonly #pairs = new Set<Pair>();
  #server: Server | null = null;
  readonly #port: number;
  #hold: Hold = 'none';

  private constructor(target: DatabasePlace, port: number) {
    this.#target = target;
    this.#port = port;
  }

  static async start(target: DatabasePlace): Promise<DatabaseProxy> {
    // The port is fixed, since the proxy listens there again after it has refused connections.
    const proxy = new DatabaseProxy(target, await freePort());
    await proxy.#listen();
    return proxy;
  }

  /** The address of the proxy, for the configuration of the server under test. */
  get address(): { host: string; port: number } {
    return { host: '127.0.0.1', port: this.#port };
  }

  /** The number of connections that are open now. */
  get connections(): number {
    return this.#pairs.size;
  }

  /** Closes every connection, and accepts new ones. */
  cut(): void {
    for (const { client, upstream } of this.#pairs) {
      client.destroy();
      upstream.destroy();
    }
  }

  /** Closes every connection and the port: clients are refused until `forward`. */
  async refuse(): Promise<void> {
    const server = this.#server;
    this.#server = null;
    if (server !== null) {
      const closed = once(server, 'close');
      server.close();
      this.cut();
      await closed;
    }
  }

  /**
   * Keeps connections open and accepts new ones, but holds the bytes of the given direction back. No byte gets lost.
   */
  hold(hold: Exclude<Hold, 'none'>): void {
    this.#hold = hold;
    for (const pair of this.#pairs) this.#apply(pair);
  }

  /** Holds the bytes of the open connections back for ever; new connections work. */
  abandon(): void {
    for (const { client, upstream } of this.#pairs) {
      client.pause();
      upstream.pause();
    }
  }

  /** Forwards again, beginning with the bytes that were held back, and listens again. */
  async forward(): Promise<void> {
    this.#hold = 'none';
    for (const pair of this.#pairs) this.#apply(pair);
    if (this.#server === null) await this.#listen();
  }

  async stop(): Promise<void> {
    await this.refuse();
  }

  async #listen(): Promise<void> {
    const server = createServer((client) => this.#accept(client));
    server.listen(this.#port, '127.0.0.1');
    await once(server, 'listening');
    this.#server = server;
  }

  #accept(client: Socket): void {
    const upstream = connect({ path: `${this.#target.host}/.s.PGSQL.${this.#target.port}` });
    const pair: Pair = { client, upstream };
    this.#pairs.add(pair);
    const join = (from: Socket, to: Socket): void => {
      from.on('data', (chunk: Buffer) => to.write(chunk));
      from.once('end', () => to.end());
      from.on('error', () => {});
      from.once('close', () => {
        this.#pairs.delete(pair);
        to.destroySoon();
      });
    };
    join(client, upstream);
    join(upstream, client);
    this.#apply(pair);
  }

  #apply({ client, upstream }: Pair): void {
    if (this.#hold === 'questions' || this.#hold === 'both') client.pause();
    else client.resume();
    if (this.#hold === 'answers' || this.#hold === 'both') upstream.pause();
    else upstream.resume();
  }
}
