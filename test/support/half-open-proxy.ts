import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

/** The address of the real server: a port, or the folder of a Unix socket. */
export interface Upstream {
  readonly host: string;
  readonly port: number;
}

/**
 * The treatment of bytes:
 * - `pass`: forwards them.
 * - `swallow`: accepts connections and keeps them open, but drops every byte.
 * - `reset` and `close`: cut a connection at its first byte.
 */
export type ProxyMode = 'pass' | 'swallow' | 'reset' | 'close';

interface Pair {
  readonly client: Socket;
  readonly upstream: Socket;
  /**
   * True after a byte was dropped. The connection then forwards nothing more: the rest would make no sense without it.
   */
  dead: boolean;
}

/** A TCP proxy in front of the tests' PostgreSQL that can act like a path which drops packets. */
export class HalfOpenProxy {
  mode: ProxyMode = 'pass';
  /** The number of connections that clients closed, and the number of those that they reset. */
  readonly ends = { closed: 0, reset: 0 };
  readonly #upstream: Upstream;
  readonly #server: Server;
  readonly #pairs = new Set<Pair>();
  readonly #upstreams = new Set<Socket>();
  #accepted = 0;

  private constructor(upstream: Upstream) {
    this.#upstream = upstream;
    this.#server = createServer((client) => this.#accept(client));
  }

  static async start(upstream: Upstream): Promise<HalfOpenProxy> {
    const proxy = new HalfOpenProxy(upstream);
    proxy.#server.listen(0, '127.0.0.1');
    await once(proxy.#server, 'listening');
    return proxy;
  }

  /** The address of the proxy, to connect to instead of the upstream. */
  get address(): Upstream {
    return { host: '127.0.0.1', port: (this.#server.address() as AddressInfo).port };
  }

  /** The number of clients that are connected now. */
  get connections(): number {
    return this.#pairs.size;
  }

  /** The number of clients that ever connected. */
  get accepted(): number {
    return this.#accepted;
  }

  async stop(): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    for (const { client } of this.#pairs) client.destroy();
    for (const upstream of this.#upstreams) upstream.destroy();
    await closed;
  }

  #accept(client: Socket): void {
    this.#accepted += 1;
    const { host, port } = this.#upstream;
    const upstream = host.startsWith('/') ? connect(`${host}/.s.PGSQL.${port}`) : connect(port, host);
    const pair: Pair = { client, upstream, dead: false };
    this.#pairs.add(pair);
    this.#upstreams.add(upstream);
    client.on('data', (bytes) => this.#forward(pair, upstream, bytes));
    upstream.on('data', (bytes) => this.#forward(pair, client, bytes));
    client.on('error', () => (this.ends.reset += 1));
    client.on('end', () => (this.ends.closed += 1));
    // A path that drops packets drops the client's close as well. So the upstream of a dead connection stays open until
    // `stop`.
    client.on('close', () => {
      this.#pairs.delete(pair);
      if (!pair.dead) upstream.destroy();
    });
    upstream.on('error', () => upstream.destroy());
    upstream.on('close', () => {
      this.#upstreams.delete(upstream);
      if (!pair.dead) client.destroy();
    });
  }

  #forward(pair: Pair, to: Socket, bytes: Buffer): void {
    if (this.mode === 'reset') pair.client.resetAndDestroy();
    if (this.mode === 'close') pair.client.destroy();
    if (this.mode !== 'pass') pair.dead = true;
    if (!pair.dead) to.write(bytes);
  }
}
