import { connect, type Socket } from 'node:net';

const HEAD_END = '\r\n\r\n';
/** A round fails if an answer takes longer than this. */
const STALLED_MS = 30_000;

/** A complete HTTP request that posts the nth message. */
export function postOf(host: string, path: string, n: number): string {
  return requestOf(path, { text: `message ${n}: load on web-${n % 7} is above its threshold` }, host);
}

/** A complete HTTP request with this body, which has to be ASCII. */
export function requestOf(path: string, input: object, host = '127.0.0.1'): string {
  const body = JSON.stringify(input);
  const head = `POST ${path} HTTP/1.1\r\nHost: ${host}\r\nContent-Type: application/json\r\nContent-Length: `;
  return `${head}${body.length}${HEAD_END}${body}`;
}

/**
 * One persistent HTTP connection. It sends one request at a time, in ASCII, and expects a Content-Length in each
 * answer.
 *
 * It uses a bare socket and no HTTP library, since the benchmark shares the machine's cores with the measured server.
 * undici would take as much of them as the server does (measured: 35 µs a request against 12).
 */
export class HttpConnection {
  readonly #socket: Socket;
  #received = '';
  #body = '';
  #answered: PromiseWithResolvers<number> = Promise.withResolvers();

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.setEncoding('latin1');
    socket.setNoDelay(true);
    socket.on('timeout', () => socket.destroy(new Error(`no answer from the measured server for ${STALLED_MS} ms`)));
    socket.on('data', (chunk: string) => this.#read(chunk));
    socket.on('error', (error) => this.#answered.reject(error));
    socket.on('close', () => this.#answered.reject(new Error('the connection was closed in a benchmark')));
  }

  static open(host: string, port: number): Promise<HttpConnection> {
    return new Promise((resolve, reject) => {
      const socket = connect({ host, port }, () => resolve(new HttpConnection(socket)));
      socket.once('error', reject);
    });
  }

  /** False once the connection is closed: servers close connections that are idle. */
  get isOpen(): boolean {
    return !this.#socket.destroyed;
  }

  /** The body of the last answer. */
  get body(): string {
    return this.#body;
  }

  /**
   * Sends a complete request; resolves with the status of its answer when the body has arrived. Rejects if the
   * connection is closed.
   */
  ask(request: string): Promise<number> {
    // A destroyed socket emits no further event, so nothing would settle the promise.
    if (!this.isOpen) return Promise.reject(new Error('the connection was closed before the request'));
    this.#answered = Promise.withResolvers();
    // The timeout runs during a request only: an idle connection may wait longer for its next request.
    this.#socket.setTimeout(STALLED_MS);
    this.#socket.write(request, 'latin1');
    return this.#answered.promise;
  }

  close(): void {
    this.#answered.promise.catch(() => {});
    this.#socket.destroy();
  }

  #read(chunk: string): void {
    this.#received += chunk;
    const head = this.#received.indexOf(HEAD_END);
    if (head === -1) return;
    const length = /\r\ncontent-length: (\d+)/i.exec(this.#received)?.[1];
    if (length === undefined) throw new Error('an answer without a Content-Length');
    if (this.#received.length < head + HEAD_END.length + Number(length)) return;
    const status = Number(this.#received.slice(9, 12));
    this.#body = this.#received.slice(head + HEAD_END.length);
    this.#received = '';
    this.#socket.setTimeout(0);
    this.#answered.resolve(status);
  }
}
