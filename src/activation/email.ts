import addressparser from 'nodemailer/lib/addressparser';
import MailComposer from 'nodemailer/lib/mail-composer';
import SMTPConnection from 'nodemailer/lib/smtp-connection';
import type { SmtpConfig } from '../config/services.ts';
import type { EmailTemplate } from '../config/email-template.ts';
import { fillEmailTemplate } from '../config/email-template.ts';
import { parseProofAddress } from '../model/proof-address.ts';
import { ProviderError, type CodeProvider, type OutgoingCode, type ProviderFailure } from './provider.ts';

const PROBE_TIMEOUT_MS = 5_000;
/**
 * The time-out of sending one e-mail: mail servers that greet late or scan messages are slow, and nobody waits for a
 * send.
 */
const SEND_TIMEOUT_MS = 30_000;
const CONNECT_TIMEOUT_MS = 5_000;
const MAX_RESPONSE_BYTES = 64 * 1024;
const HOUR_MS = 3_600_000;

/** The texts of e-mails, and bounds that tests set. */
export interface EmailOptions {
  readonly emailTemplate: EmailTemplate;
  readonly projectName: string;
  readonly probeTimeoutMs?: number;
  readonly sendTimeoutMs?: number;
  /** PEM of a certificate authority that is trusted instead of the system's authorities. */
  readonly ca?: string;
}

interface Sender {
  readonly name: string;
  readonly address: string;
}

/** Reads `services.smtp.from`; null when it is not exactly one address, with or without a name. */
export function parseSender(text: string): Sender | null {
  const [first, ...others] = addressparser(text, { flatten: true });
  if (first === undefined || others.length > 0 || typeof parseProofAddress(first.address) === 'string') return null;
  return { name: first.name, address: first.address };
}

/** Sends codes by e-mail, through one mail server; this server checks the codes itself. */
export class EmailCodeProvider implements CodeProvider {
  readonly name = 'email';
  readonly kind = 'email';
  readonly verifyCode = null;
  readonly #config: SmtpConfig;
  readonly #options: EmailOptions;
  readonly #sender: Sender;
  /** A function for each open connection, which aborts the work on it. */
  readonly #openConnectionAborters = new Set<(error: ProviderError) => void>();

  /** `config.from` must be a sender that `parseSender` can read. */
  constructor(config: SmtpConfig, options: EmailOptions) {
    this.#config = config;
    this.#sender = parseSender(config.from)!;
    this.#options = options;
  }

  /** Connects to the mail server and logs in, but sends nothing. */
  async probe(): Promise<void> {
    await this.#withConnection(this.#options.probeTimeoutMs ?? PROBE_TIMEOUT_MS, () => Promise.resolve());
  }

  async send(code: OutgoingCode): Promise<null> {
    const { envelope, message } = await this.#compose(code);
    await this.#withConnection(this.#options.sendTimeoutMs ?? SEND_TIMEOUT_MS, (connection) =>
      awaitCallback((done) => connection.send(envelope, message, done)),
    );
    return null;
  }

  stop(): Promise<void> {
    for (const abort of this.#openConnectionAborters) abort(new ProviderError('stopped'));
    return Promise.resolve();
  }

  async #compose({ address, code, validMs }: OutgoingCode) {
    const { emailTemplate, projectName } = this.#options;
    const values = { code, project: projectName, hours: String(Math.round(validMs / HOUR_MS)) };
    const { subject, text } = fillEmailTemplate(emailTemplate, values);
    const composer = new MailComposer({
      // The addresses are objects, so that the library reads nothing in them as a list or a comment.
      from: { ...this.#sender },
      to: { name: '', address },
      subject,
      text,
      headers: { 'Auto-Submitted': 'auto-generated' },
      disableFileAccess: true,
      disableUrlAccess: true,
    });
    const message = await composer.compile().build();
    return { envelope: { from: this.#sender.address, to: [address] }, message };
  }

  /** Logs in on a new connection, calls `work` with the connection, and closes it, all within `timeoutMs`. */
  async #withConnection(timeoutMs: number, work: (connection: SMTPConnection) => Promise<unknown>): Promise<void> {
    const { host, port, tls, user, password } = this.#config;
    const { ca } = this.#options;
    const connection = new SMTPConnection({
      host,
      port,
      secure: tls === 'implicit',
      requireTLS: tls === 'starttls',
      ignoreTLS: tls === 'none',
      connectionTimeout: CONNECT_TIMEOUT_MS,
      dnsTimeout: CONNECT_TIMEOUT_MS,
      greetingTimeout: timeoutMs,
      socketTimeout: timeoutMs,
      socketCloseTimeout: 0,
      maxResponseSize: MAX_RESPONSE_BYTES,
      tls: ca === undefined ? {} : { ca },
      // A mail server on this machine can be used even if the machine has no network.
      allowInternalNetworkInterfaces: true,
    });
    const { promise: broken, reject } = Promise.withResolvers<never>();
    // Once the work is done, nothing awaits this promise, and its rejection is ignored.
    broken.catch(() => {});
    const timer = setTimeout(() => reject(new ProviderError('timeout')), timeoutMs);
    connection.on('error', reject);
    connection.on('end', () => reject(new ProviderError('connection', 'closed')));
    this.#openConnectionAborters.add(reject);
    const loginAndWork = async (): Promise<void> => {
      await awaitCallback((done) => connection.connect((error) => done(error ?? null)));
      if (user !== null) await awaitCallback((done) => connection.login({ user, pass: password ?? '' }, done));
      await work(connection);
    };
    const running = loginAndWork();
    running.catch(() => {});
    try {
      await Promise.race([running, broken]);
    } catch (error) {
      throw toProviderError(error);
    } finally {
      clearTimeout(timer);
      this.#openConnectionAborters.delete(reject);
      // No QUIT: it would only wait for another answer of the mail server.
      connection.close();
    }
  }
}

function awaitCallback(start: (done: (error: Error | null) => void) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    start((error) => (error === null || error === undefined ? resolve() : reject(error)));
  });
}

const FAILURE_BY_ERROR_CODE: Readonly<Record<string, ProviderFailure>> = {
  ETIMEDOUT: 'timeout',
  ETLS: 'tls',
  EAUTH: 'login',
  ENOAUTH: 'login',
  EENVELOPE: 'address',
  EPROTOCOL: 'answer',
  EMESSAGE: 'refused',
};

/** A mail server's answer quotes addresses, so the error gets only a code and the number of the answer. */
function toProviderError(error: unknown): ProviderError {
  if (error instanceof ProviderError) return error;
  const { code, originalCode, responseCode } = error as Record<string, unknown>;
  const detailParts = [originalCode, code].filter((each) => typeof each === 'string' && /^[A-Z0-9_]{1,60}$/.test(each));
  if (typeof responseCode === 'number' && responseCode > 0) detailParts.push(`answer ${responseCode}`);
  const isTls = detailParts.some((word) => /CERT|SELF_SIGNED|TLS|SSL/.test(String(word)));
  const failure = isTls ? 'tls' : (FAILURE_BY_ERROR_CODE[String(code)] ?? 'connection');
  return new ProviderError(failure, detailParts.length === 0 ? null : detailParts.join(', '));
}
