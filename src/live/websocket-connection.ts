import type { Socket } from 'node:net';
import { WebSocket } from 'ws';
import type { SourceKey } from '../model/source-key.ts';
import { closeCodes, closeSentences, endingText, type CloseReason } from './close-codes.ts';
import type { Connection, ConnectionListener } from './connection.ts';
import type { Prepared } from './prepared.ts';
import { drained } from './tcp-connection.ts';

/** What the library would close with by itself, and what that means here. */
const PROTOCOL_FAILURES: Readonly<Record<number, CloseReason>> = {
  1002: 'notJson',
  1003: 'notJson',
  1007: 'notJson',
  1008: 'tooLarge',
  1009: 'tooLarge',
};

/**
 * The library's socket, which closes with our codes. Its events are taken where they are emitted: four listeners for each
 * of ten thousand connections were measured as an eighth of their memory.
 */
export class ClientSocket extends WebSocket {
  connection: WebSocketConnection | null = null;

  /**
   * The library has one bound for all connections of a server and for all of their time. Its receiver keeps it in a field
   * that is not public; a test sends frames of both sizes.
   */
  allowFrames(maxBytes: number): void {
    const receiver = Reflect.get(this, '_receiver') as { _maxPayload: number } | null;
    if (receiver !== null) receiver._maxPayload = maxBytes;
  }

  override emit(event: string | symbol, ...args: unknown[]): boolean {
    const { connection } = this;
    if (connection === null) return super.emit(event, ...args);
    if (event === 'message') connection.receive(args[0] as Buffer, args[1] as boolean);
    else if (event === 'ping') connection.asked();
    else if (event === 'close') connection.over();
    // 'error': the end of it says 'close' as well, and a broken frame has been told by then.
    return true;
  }

  override close(code?: number, data?: string | Buffer): void {
    // Frames that break the protocol make the library close with a code alone; the echo of a client's has a text too.
    const reason = code === undefined || data !== undefined ? undefined : PROTOCOL_FAILURES[code];
    if (reason !== undefined && this.connection !== null && this.readyState === WebSocket.OPEN) {
      this.connection.fail(reason);
    } else super.close(code, data);
  }
}

/**
 * Text frames of WebSocket. Answers go through the library; what is the same for many goes to the socket below it, whole
 * frames at a time. That cannot come between two parts of a frame: without compression the library writes each frame
 * within the call that sends it.
 */
export class WebSocketConnection implements Connection {
  readonly kind = 'websocket';
  readonly source: SourceKey;
  readonly #client: ClientSocket;
  readonly #socket: Socket;
  #listener: ConnectionListener | null = null;
  #code = 0;

  constructor(client: ClientSocket, socket: Socket, source: SourceKey) {
    this.source = source;
    this.#client = client;
    this.#socket = socket;
    client.connection = this;
  }

  /** From now on what arrives is told. */
  open(listener: ConnectionListener): void {
    this.#listener = listener;
  }

  get bytesWaiting(): number {
    return this.#socket.writableLength;
  }

  get bytesRead(): number {
    return this.#socket.bytesRead;
  }

  get bytesTaken(): number {
    return this.#socket.bytesWritten - this.#socket.writableLength;
  }

  get isFull(): boolean {
    return this.#socket.writableNeedDrain;
  }

  allowFrames(maxBytes: number): void {
    this.#client.allowFrames(maxBytes);
  }

  send(text: string): void {
    if (this.#isOpen) this.#client.send(text);
  }

  sendPrepared(prepared: Prepared, behind: number): void {
    if (this.#isOpen) this.#socket.write(prepared.bytes('websocket', behind));
  }

  ask(): void {
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
    this.#code = closeCodes[reason];
    this.#client.send(endingText(reason));
    this.#client.close(this.#code, closeSentences[reason]);
    // The client's half of the closing handshake must be read.
    this.#client.resume();
  }

  destroy(): void {
    this.#client.terminate();
  }

  /** A text arrived. */
  receive(data: Buffer, isBinary: boolean): void {
    if (!this.#isOpen) return;
    if (isBinary) this.#listener?.failed('notJson');
    else this.#listener?.received(data.toString('utf8'));
  }

  asked(): void {
    if (this.#isOpen) this.#listener?.asked();
  }

  fail(reason: CloseReason): void {
    this.#listener?.failed(reason);
    // A listener that had closed already leaves the handshake to us.
    this.close(reason);
  }

  over(): void {
    this.#listener?.closed(this.#code);
  }

  get #isOpen(): boolean {
    return this.#client.readyState === WebSocket.OPEN;
  }
}
