import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

/** A proxy that cuts each connection after a number of bytes towards the client, also in the middle of a text. */
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

  /** Cuts every open connection. */
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
        // The other side gets its bytes first, and closes on its own.
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
        // Forwarded bytes have to arrive, so that the cut is where the budget puts it; a reset could overtake them.
        client.end(part);
        server.destroy();
      }
    });
  }
}
