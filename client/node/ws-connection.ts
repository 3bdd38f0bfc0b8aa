import { WebSocket, type RawData } from 'ws';
import type { ServerAddress } from '../core/address.ts';
import { ConnectionError } from '../core/chat-error.ts';
import type { Connection, ConnectionBounds, ConnectionCallbacks } from '../core/connection.ts';

const CLOSE_TIMEOUT_MS = 1_000;

/**
 * A connection over ws:// or wss://, with one text frame for each JSON text. The library answers the server's pings.
 */
export class WsConnection implements Connection {
  readonly #socket: WebSocket;
  readonly #callbacks: ConnectionCallbacks;
  #destroyReasonOrError: string | null = null;
  #closeTimer: NodeJS.Timeout | null = null;

  private constructor(socket: WebSocket, callbacks: ConnectionCallbacks) {
    this.#socket = socket;
    this.#callbacks = callbacks;
    socket.on('message', (data, isBinary) => this.#onMessage(data, isBinary));
  }

  static async open(
    { url }: ServerAddress,
    callbacks: ConnectionCallbacks,
    { connectTimeoutMs, maxInboundTextBytes, connectCancellation }: ConnectionBounds,
  ): Promise<WsConnection> {
    const options = { maxPayload: maxInboundTextBytes, handshakeTimeout: connectTimeoutMs, perMessageDeflate: false };
    const socket = new WebSocket(url, options);
    const connection = new WsConnection(socket, callbacks);
    const stop = (): void => socket.terminate();
    connectCancellation?.addEventListener('abort', stop);
    await new Promise<void>((resolve, reject) => {
      socket.once('open', resolve);
      socket.once('error', (cause) =>
        reject(new ConnectionError(`${url} cannot be reached: ${cause.message}`, { cause })),
      );
    }).finally(() => connectCancellation?.removeEventListener('abort', stop));
    // Set after the connection is open: `open` has already rejected for earlier errors.
    socket.on('error', (error) => (connection.#destroyReasonOrError ??= error.message));
    socket.once('close', (code, reason) => connection.#onClose(code, reason.toString('utf8')));
    return connection;
  }

  get unsentBytes(): number {
    return this.#socket.bufferedAmount;
  }

  send(text: string): void {
    // Without a callback the library would throw an error that its event `close` reports as well.
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.send(text, () => {});
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  close(): void {
    if (this.#closeTimer !== null) return;
    this.#closeTimer = setTimeout(() => this.#socket.terminate(), CLOSE_TIMEOUT_MS);
    // The close frame of the server can only arrive while the socket reads.
    this.#socket.resume();
    this.#socket.close(1000);
  }

  destroy(reason: string): void {
    this.#destroyReasonOrError ??= reason;
    this.#socket.terminate();
  }

  #onMessage(data: RawData, isBinary: boolean): void {
    if (isBinary) this.destroy('the server sent something that is not text');
    else this.#callbacks.onText((data as Buffer).toString('utf8'));
  }

  #onClose(code: number, closeReason: string): void {
    if (this.#closeTimer !== null) clearTimeout(this.#closeTimer);
    // 1005 and 1006 are the library's own codes for "no code received".
    const receivedCode = code === 1005 || code === 1006 ? null : code;
    this.#callbacks.onEnd({
      code: receivedCode,
      reason: this.#destroyReasonOrError ?? (closeReason === '' ? 'the connection was cut' : closeReason),
    });
  }
}
