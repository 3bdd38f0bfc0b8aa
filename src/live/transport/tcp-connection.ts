import type { Socket } from 'node:net';
import type { SourceKey } from '../../model/source-key.ts';
import { closeCodes, sessionEndedNotification, type CloseReason } from '../close-codes.ts';
import type { LiveConnection, ConnectionListener } from './live-connection.ts';
import { LineReader } from './line-reader.ts';
import type { EncodedFrames } from '../encoded-frames.ts';

/** The ping; the client answers it with any line. */
const PING_LINE = `${JSON.stringify({ jsonrpc: '2.0', method: 'ping' })}\n`;

/** A connection that carries one JSON text per line, on a TCP or TLS socket. So `nc` can be a client. */
export class TcpConnection implements LiveConnection {
  readonly kind = 'tcp';
  readonly source: SourceKey;
  readonly handshakeCookies = [];
  readonly #socket: Socket;
  readonly #lineReader: LineReader;
  #listener: ConnectionListener | null = null;
  #closeCode = 0;
  #isOpen = true;

  constructor(socket: Socket, options: { source: SourceKey; maxFrameBytes: number }) {
    this.source = options.source;
    this.#socket = socket;
    this.#lineReader = new LineReader(options.maxFrameBytes);
    socket.setNoDelay(true);
    // Errors are ignored, since the event 'close' follows each.
    socket.on('error', ignoreError);
  }

  /** Sends the reason on a socket that the server refuses, and ends it. */
  static refuse(socket: Socket, reason: CloseReason): void {
    socket.on('error', ignoreError);
    socket.end(`${sessionEndedNotification(reason)}\n`, () => socket.destroy());
  }

  /** Starts to pass incoming texts to the listener. */
  open(listener: ConnectionListener): void {
    this.#listener = listener;
    this.#socket.on('data', (chunk: Buffer) => this.#onData(chunk));
    this.#socket.on('end', () => listener.onEnd());
    this.#socket.on('close', () => {
      this.#isOpen = false;
      listener.onClose(this.#closeCode);
    });
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
    this.#lineReader.maxLineBytes = maxBytes;
  }

  send(text: string): void {
    if (this.#isOpen) this.#socket.write(`${text}\n`);
  }

  sendEncoded(frames: EncodedFrames, framesToSkip: number): void {
    if (this.#isOpen) this.#socket.write(frames.bytes('tcp', framesToSkip));
  }

  ping(): void {
    if (this.#isOpen) this.#socket.write(PING_LINE);
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  drained(): Promise<void> {
    return drained(this.#socket);
  }

  close(reason: CloseReason): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#closeCode = closeCodes[reason];
    this.#socket.end(`${sessionEndedNotification(reason)}\n`);
    // Reads and discards further input: unread input would cause a reset, by which the client could lose the last line.
    this.#socket.resume();
  }

  destroy(): void {
    this.#socket.destroy();
  }

  #onData(chunk: Buffer): void {
    if (!this.#isOpen) return;
    for (const event of this.#lineReader.push(chunk)) {
      if ('problem' in event) this.#listener!.onProtocolError(event.problem);
      else this.#listener!.onText(event.text);
      if (!this.#isOpen) return;
    }
  }
}

/** Resolves once a socket can take more, or is closed. */
export function drained(socket: Socket): Promise<void> {
  if (!socket.writableNeedDrain || socket.destroyed) return Promise.resolve();
  return new Promise((resolve) => {
    const cleanUpThenResolve = (): void => {
      socket.off('drain', cleanUpThenResolve);
      socket.off('close', cleanUpThenResolve);
      resolve();
    };
    socket.on('drain', cleanUpThenResolve);
    socket.on('close', cleanUpThenResolve);
  });
}

function ignoreError(): void {}
