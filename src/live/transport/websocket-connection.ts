import type { Socket } from 'node:net';
import { WebSocket } from 'ws';
import type { SourceKey } from '../../model/source-key.ts';
import { closeCodes, closeMessages, sessionEndedNotification, type CloseReason } from '../close-codes.ts';
import type { KlatchCookie } from '../../operations/core/session-cookie.ts';
import type { LiveConnection, ConnectionListener } from './live-connection.ts';
import type { EncodedFrames } from '../encoded-frames.ts';
import { drained } from './tcp-connection.ts';

/** The codes with which the library closes a connection on its own, and the reasons that this server gives instead. */
const PROTOCOL_ERROR_CLOSE_REASONS: Readonly<Record<number, CloseReason>> = {
  1002: 'invalid_json',
  1003: 'invalid_json',
  1007: 'invalid_json',
  1008: 'too_large',
  1009: 'too_large',
};

/**
 * The library's socket, which closes with our codes. It handles its events in `emit`: four listeners for each of ten
 * thousand connections took an eighth of their memory (measured).
 */
export class ClientSocket extends WebSocket {
  connection: WebSocketConnection | null = null;

  /**
   * Sets the most bytes of a frame on this connection. The library knows only one bound for all connections of a
   * server. Its receiver keeps the bound in a field that is not public; a test sends frames of both sizes.
   */
  setMaxFrameBytes(maxBytes: number): void {
    const receiver = Reflect.get(this, '_receiver') as { _maxPayload: number } | null;
    if (receiver !== null) receiver._maxPayload = maxBytes;
  }

  override emit(event: string | symbol, ...args: unknown[]): boolean {
    const { connection } = this;
    if (connection === null) return super.emit(event, ...args);
    if (event === 'message') connection.onMessage(args[0] as Buffer, args[1] as boolean);
    else if (event === 'ping') connection.countPingAsRequest();
    else if (event === 'close') connection.onClose();
    // Ignores 'error': 'close' follows, and a broken frame has been reported by then.
    return true;
  }

  override close(code?: number, data?: string | Buffer): void {
    // If a frame breaks the protocol, the library closes with a code and no text. When it echoes a client's code, there
    // is a text.
    const reason = code === undefined || data !== undefined ? undefined : PROTOCOL_ERROR_CLOSE_REASONS[code];
    if (reason !== undefined && this.connection !== null && this.readyState === WebSocket.OPEN) {
      this.connection.closeForProtocolError(reason);
    } else super.close(code, data);
  }
}

/**
 * Text frames of WebSocket. Answers go through the library; frames for many clients go directly to the socket, whole
 * frames at a time. They cannot end up between two parts of a frame: without compression the library writes each frame
 * within the call that sends it.
 */
export class WebSocketConnection implements LiveConnection {
  readonly kind = 'websocket';
  readonly source: SourceKey;
  readonly handshakeCookies: readonly KlatchCookie[];
  readonly #client: ClientSocket;
  readonly #socket: Socket;
  #listener: ConnectionListener | null = null;
  #closeCode = 0;

  constructor(
    client: ClientSocket,
    socket: Socket,
    { source, handshakeCookies }: { source: SourceKey; handshakeCookies: readonly KlatchCookie[] },
  ) {
    this.source = source;
    this.handshakeCookies = handshakeCookies;
    this.#client = client;
    this.#socket = socket;
    client.connection = this;
  }

  /** Starts to pass incoming texts to the listener. */
  open(listener: ConnectionListener): void {
    this.#listener = listener;
  }

  get bytesQueued(): number {
    return this.#socket.writableLength;
  }

  get bytesRead(): number {
    return this.#socket.bytesRead;
  }

  get bytesSent(): number {
    return this.#socket.bytesWritten - this.#socket.writableLength;
  }

  get isFull(): boolean {
    return this.#socket.writableNeedDrain;
  }

  setMaxFrameBytes(maxBytes: number): void {
    this.#client.setMaxFrameBytes(maxBytes);
  }

  send(text: string): void {
    if (this.#isOpen) this.#client.send(text);
  }

  sendEncoded(frames: EncodedFrames, framesToSkip: number): void {
    if (this.#isOpen) this.#socket.write(frames.bytes('websocket', framesToSkip));
  }

  ping(): void {
    if (this.#isOpen) this.#client.ping();
  }

  pause(): void {
    this.#client.pause();
  }

  resume(): void {
    this.#client.resume();
  }

  drained(): Promise<void> {
    return drained(this.#socket);
  }

  close(reason: CloseReason): void {
    if (!this.#isOpen) return;
    this.#closeCode = closeCodes[reason];
    this.#client.send(sessionEndedNotification(reason));
    this.#client.close(this.#closeCode, closeMessages[reason]);
    // Reading continues, since the client's half of the closing handshake must be read.
    this.#client.resume();
  }

  destroy(): void {
    this.#client.terminate();
  }

  onMessage(data: Buffer, isBinary: boolean): void {
    if (!this.#isOpen) return;
    if (isBinary) this.#listener?.onProtocolError('invalid_json');
    else this.#listener?.onText(data.toString('utf8'));
  }

  countPingAsRequest(): void {
    if (this.#isOpen) this.#listener?.countPingAsRequest();
  }

  closeForProtocolError(reason: CloseReason): void {
    this.#listener?.onProtocolError(reason);
    // If the listener's session had ended before, the listener did nothing, so this class closes the connection.
    this.close(reason);
  }

  onClose(): void {
    this.#listener?.onClose(this.#closeCode);
  }

  get #isOpen(): boolean {
    return this.#client.readyState === WebSocket.OPEN;
  }
}
