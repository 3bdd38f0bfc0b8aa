import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, type AddressInfo } from 'node:net';
import { createServer, type Server } from 'node:tls';
import { CertificateAuthority } from '../../support/certificate-authority.ts';

/**
 * A TLS proxy in front of a server, for programs that post by https only. They have to trust its certificate authority.
 */
export class TlsFront {
  readonly #authority: CertificateAuthority;
  readonly #server: Server;

  private constructor(authority: CertificateAuthority, server: Server) {
    this.#authority = authority;
    this.#server = server;
  }

  static async start(target: { readonly port: number }): Promise<TlsFront> {
    const authority = new CertificateAuthority();
    const { certificate, key } = authority.issue('127.0.0.1', 'IP:127.0.0.1');
    const server = createServer({ cert: readFileSync(certificate), key: readFileSync(key) }, (socket) => {
      const inner = connect(target.port, '127.0.0.1');
      socket.pipe(inner).pipe(socket);
      for (const [each, other] of [
        [socket, inner],
        [inner, socket],
      ] as const)
        each.on('error', () => other.destroy()).on('close', () => other.destroy());
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new TlsFront(authority, server);
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get caFile(): string {
    return this.#authority.caFile;
  }

  async stop(): Promise<void> {
    this.#server.close();
    await once(this.#server, 'close');
    this.#authority.stop();
  }
}
