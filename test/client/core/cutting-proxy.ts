import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

/**
 * A TCP proxy. It can cut connections, at once or after a number of bytes to the client, and it can hold all bytes
 * back.
 */
export class CuttingProxy {
  /** The number of connections that were cut because they reached their budget. */
  cuts = 0;
  /** Returns how many bytes the next connection may carry to the client; called once for each connection. */
  budget: () => number = () => Number.MAX_SAFE_INTEGER;
  readonly #upstreamPort: () => number;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #silentSockets = new Set<Socket>();
  #holdsBytes = false;

  private constructor(upstreamPort: () => number) {
    this.#upstreamPort = upstreamPort;
    this.#server = createServer((client) => this.#join(client));
  }

  /** `upstreamPort` is a function if the server does not listen yet. */
  static async start(upstreamPort: number | (() => number)): Promise<CuttingProxy> {
    const proxy = new CuttingProxy(typeof upstreamPort === 'number' ? () => upstreamPort : upstreamPort);
    proxy.#server.listen(0, '127.0.0.1');
    await once(proxy.#server, 'listening');
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Cuts every open connection. */
  cut(): void {
    for (const socket of [...this.#sockets, ...this.#silentSockets]) socket.destroy();
  }

  /** From now on no byte arrives on either side, and neither side notices that the other one closes. */
  hold(): void {
    this.#holdsBytes = true;
    for (const socket of this.#sockets) socket.pause();
  }

  /** Ends `hold`: bytes pass again, those that were held first. */
  release(): void {
    this.#holdsBytes = false;
    for (const socket of this.#sockets) socket.resume();
  }

  /** Ends `hold` for new connections. Open connections stay silent, as if a router had forgotten them. */
  releaseNew(): void {
    this.#holdsBytes = false;
    for (const socket of this.#sockets) this.#silentSockets.add(socket);
    this.#sockets.clear();
  }

  async stop(): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.cut();
    await closed;
  }

  #join(client: Socket): void {
    const server = connect(this.#upstreamPort(), '127.0.0.1');
    let left = this.budget();
    const end = (): void => {
      client.destroy();
      server.destroy();
    };
    for (const socket of [client, server]) {
      this.#sockets.add(socket);
      socket.on('error', end);
      socket.once('close', () => {
        this.#sockets.delete(socket);
        this.#silentSockets.delete(socket);
        // `destroySoon` closes the other side after its pending bytes are sent.
        client.destroySoon();
        server.destroySoon();
      });
    }
    client.on('data', (bytes) => server.write(bytes));
    server.on('data', (bytes) => {
      const part = bytes.subarray(0, left);
      left -= part.length;
      if (left > 0) client.write(part);
      else {
        this.cuts += 1;
        // `end` delivers the bytes within the budget, so that the client gets exactly those. A reset could overtake
        // them.
        client.end(part);
        server.destroy();
      }
    });
    if (this.#holdsBytes) for (const socket of [client, server]) socket.pause();
  }
}
