import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

/** A way to a server that is cut wherever it happens to be: after so many bytes towards the client, in mid-word. */
export class CuttingProxy {
  /** Connections that were cut. */
  cuts = 0;
  /** How many bytes the next connection may carry; called for each. */
  budget: () => number = () => Number.MAX_SAFE_INTEGER;
  readonly #upstreamPort: number;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(upstreamPort: number) {
    this.#upstreamPort = upstreamPort;
    this.#server = createServer((client) => this.#join(client));
  }

  static async start(upstreamPort: number): Promise<CuttingProxy> {
    const proxy = new CuttingProxy(upstreamPort);
    proxy.#server.listen(0, '127.0.0.1');
    await once(proxy.#server, 'listening');
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Cuts every connection that there is. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async stop(): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.cut();
    await closed;
  }

  #join(client: Socket): void {
    const server = connect(this.#upstreamPort, '127.0.0.1');
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
        // The other side has its bytes first, and goes by itself.
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
        // What was let through arrives, so that the cut falls where the budget says; a reset could overtake it.
        client.end(part);
        server.destroy();
      }
    });
  }
}
