import { connect, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { ServerAddress } from '../core/address.ts';
import { ConnectionError } from '../core/chat-error.ts';
import type { Connection, ConnectionBounds, ConnectionCallbacks } from '../core/connection.ts';

const CLOSE_TIMEOUT_MS = 1_000;
const LINE_FEED = 0x0a;

/** A connection over tcp:// or tls://, with one line for each JSON text. */
export class LineConnection implements Connection {
  readonly #socket: Socket;
  readonly #callbacks: ConnectionCallbacks;
  readonly #maxInboundTextBytes: number;
  /** The received part of an unfinished line. */
  #unfinishedLine: Buffer[] = [];
  #unfinishedLineBytes = 0;
  #destroyReasonOrError: string | null = null;

  private constructor(socket: Socket, callbacks: ConnectionCallbacks, maxInboundTextBytes: number) {
    this.#socket = socket;
    this.#callbacks = callbacks;
    this.#maxInboundTextBytes = maxInboundTextBytes;
    socket.on('data', (chunk: Buffer) => this.#onData(chunk));
  }

  static async open(
    address: ServerAddress,
    callbacks: ConnectionCallbacks,
    bounds: ConnectionBounds,
  ): Promise<LineConnection> {
    const socket = dial(address);
    const connection = new LineConnection(socket, callbacks, bounds.maxInboundTextBytes);
    const { connectTimeoutMs, connectCancellation } = bounds;
    const stop = (): void => void socket.destroy(new Error('it was stopped'));
    connectCancellation?.addEventListener('abort', stop);
    await new Promise<void>((resolve, reject) => {
      const fail = (cause: Error): void => {
        reject(new ConnectionError(`${address.url} cannot be reached: ${cause.message}`, { cause }));
      };
      const timer = setTimeout(() => socket.destroy(new Error('it did not answer in time')), connectTimeoutMs);
      socket.once(address.usesTls ? 'secureConnect' : 'connect', resolve);
      socket.once('error', fail);
      socket.once('close', () => {
        clearTimeout(timer);
        fail(new Error('the connection was cut'));
      });
      socket.once(address.usesTls ? 'secureConnect' : 'connect', () => clearTimeout(timer));
    }).finally(() => connectCancellation?.removeEventListener('abort', stop));
    socket.setNoDelay(true);
    socket.on('error', (error) => (connection.#destroyReasonOrError ??= error.message));
    socket.once('close', () => {
      connection.#callbacks.onEnd({ code: null, reason: connection.#destroyReasonOrError ?? 'the connection was cut' });
    });
    return connection;
  }

  get unsentBytes(): number {
    return this.#socket.writableLength;
  }

  send(text: string): void {
    if (this.#socket.writable) this.#socket.write(`${text}\n`);
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  close(): void {
    this.#socket.resume();
    this.#socket.end();
    const timer = setTimeout(() => this.#socket.destroy(), CLOSE_TIMEOUT_MS);
    this.#socket.once('close', () => clearTimeout(timer));
  }

  destroy(reason: string): void {
    this.#destroyReasonOrError ??= reason;
    this.#socket.destroy();
  }

  #onData(chunk: Buffer): void {
    let lineStart = 0;
    for (let end = chunk.indexOf(LINE_FEED); end !== -1; end = chunk.indexOf(LINE_FEED, lineStart)) {
      this.#appendToLine(chunk.subarray(lineStart, end));
      if (this.#socket.destroyed) return;
      const line = Buffer.concat(this.#unfinishedLine, this.#unfinishedLineBytes).toString('utf8');
      this.#unfinishedLine = [];
      this.#unfinishedLineBytes = 0;
      lineStart = end + 1;
      if (line.trim() !== '') this.#callbacks.onText(line);
    }
    this.#appendToLine(chunk.subarray(lineStart));
  }

  #appendToLine(part: Buffer): void {
    if (part.length === 0) return;
    this.#unfinishedLine.push(part);
    this.#unfinishedLineBytes += part.length;
    if (this.#unfinishedLineBytes > this.#maxInboundTextBytes) this.destroy('the server sent a line that is too long');
  }
}

function dial({ url, usesTls }: ServerAddress): Socket {
  const { hostname, port } = new URL(url);
  const host = hostname.replace(/^\[|\]$/g, '');
  if (!usesTls) return connect(Number(port), host);
  // The server chooses its certificate by this name, which must not be an address (RFC 6066).
  return connectTls({ host, port: Number(port), ...(isIP(host) === 0 ? { servername: host } : {}) });
}
