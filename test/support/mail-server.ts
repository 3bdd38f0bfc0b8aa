import { once } from 'node:events';
import type { AddressInfo, Socket } from 'node:net';
import PostalMime, { type Email } from 'postal-mime';
import { SMTPServer, type SMTPServerOptions, type SMTPServerSession } from 'smtp-server';
import type { SmtpConfig } from '../../src/config/services.ts';

/** An e-mail as it arrived. */
export interface ReceivedLetter {
  readonly from: string;
  readonly to: readonly string[];
  readonly secure: boolean;
  readonly user: string | undefined;
  readonly raw: string;
  readonly mail: Email;
}

/** A mail server that stores its e-mails. */
export class TestMailServer {
  readonly letters: ReceivedLetter[] = [];
  connections = 0;
  readonly #server: SMTPServer;
  readonly #options: SMTPServerOptions;
  readonly #waiting = new Set<() => void>();
  readonly #sockets = new Set<Socket>();

  private constructor(options: SMTPServerOptions) {
    this.#options = options;
    this.#server = new SMTPServer({
      authOptional: true,
      logger: false,
      disableReverseLookup: true,
      closeTimeout: 100,
      onAuth: (auth, _session, done) => {
        if (auth.username === 'klatch' && auth.password === 'mail secret') done(null, { user: auth.username });
        else done(new Error('no such user'));
      },
      onData: (stream, session, done) => {
        const chunks: Buffer[] = [];
        stream.on('data', (chunk: Buffer) => chunks.push(chunk));
        stream.on('end', () => {
          void this.#keep(Buffer.concat(chunks).toString('utf8'), session);
          done();
        });
      },
      ...options,
    });
    // Errors are ignored: some tests are about clients that disconnect in the middle.
    this.#server.on('error', () => {});
    this.#server.server.on('connection', (socket: Socket) => {
      this.connections += 1;
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
    });
  }

  static async start(options: SMTPServerOptions = {}): Promise<TestMailServer> {
    const server = new TestMailServer(options);
    server.#server.listen(0, '127.0.0.1');
    await once(server.#server.server, 'listening');
    return server;
  }

  /** The configuration with which a Klatch server sends through this mail server, with the TLS mode of `start`. */
  config(changes: Partial<SmtpConfig> = {}): SmtpConfig {
    const { secure = false, key } = this.#options;
    return {
      host: '127.0.0.1',
      port: (this.#server.server.address() as AddressInfo).port,
      tls: secure ? 'implicit' : key === undefined ? 'none' : 'starttls',
      user: null,
      password: null,
      from: 'Klatch <klatch@example.org>',
      emailTemplatePath: null,
      ...changes,
    };
  }

  /** Resolves with the newest e-mail to an address, as soon as there is one. */
  async letterTo(address: string): Promise<ReceivedLetter> {
    for (;;) {
      const letter = this.letters.findLast(({ to }) => to.includes(address));
      if (letter !== undefined) return letter;
      await new Promise<void>((resolve) => this.#waiting.add(resolve));
    }
  }

  /** Resolves with the code in the newest e-mail to an address, as soon as there is one. */
  async codeTo(address: string): Promise<string> {
    const { mail } = await this.letterTo(address);
    return /\b\d{6}\b/.exec(mail.text ?? '')![0];
  }

  async #keep(raw: string, { envelope, secure, user }: SMTPServerSession): Promise<void> {
    const mail = await PostalMime.parse(raw);
    const from = envelope.mailFrom === false ? '' : envelope.mailFrom.address;
    this.letters.push({ from, to: envelope.rcptTo.map(({ address }) => address), secure, user, raw, mail });
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }
}
