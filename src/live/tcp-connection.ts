import type { Socket } from 'node:net';
import type { SourceKey } from '../model/source-key.ts';
import { closeCodes, endingText, type CloseReason } from './close-codes.ts';
import type { Connection, ConnectionListener } from './connection.ts';
import { LineReader } from './line-reader.ts';
import type { Prepared } from './prepared.ts';

/** Any line is an answer to it. */
const ASKING = `${JSON.stringify({ jsonrpc: '2.0', method: 'ping' })}\n`;

/** JSON texts as lines, on a TCP or TLS socket: `nc` is a client. */
export class TcpConnection implements Connection {
  readonly kind = 'tcp';
  readonly source: SourceKey;
  readonly #socket: Socket;
  readonly #lines: LineReader;
  #listener: ConnectionListener | null = null;
  #code = 0;
  #isOpen = true;

  constructor(socket: Socket, options: { source: SourceKey; maxFrameBytes: number }) {
    this.source = options.source;
    this.#socket = socket;
    this.#lines = new LineReader(options.maxFrameBytes);
    socket.setNoDelay(true);
    // The end of it says 'close' as well.
    socket.on('error', ignore);
  }

  /** Says why on a socket that becomes no connection, and ends it. */
  static refuse(socket: Socket, reason: CloseReason): void {
    socket.on('error', ignore);
    socket.end(`${endingText(reason)}\n`, () => socket.destroy());
  }

  /** From now on what arrives is told. */
  open(listener: ConnectionListener): void {
    this.#listener = listener;
    this.#socket.on('data', (chunk: Buffer) => this.#receive(chunk));
    this.#socket.on('end', () => listener.ended());
    this.#socket.on('close', () => {
      this.#isOpen = false;
      listener.closed(this.#code);
    });
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
    this.#lines.maxBytes = maxBytes;
  }

  send(text: string): void {
    if (this.#isOpen) this.#socket.write(`${text}\n`);
  }

  sendPrepared(prepared: Prepared, behind: number): void {
    if (this.#isOpen) this.#socket.write(prepared.bytes('tcp', behind));
  }

  ask(): void {
    if (this.#isOpen) this.#socket.write(ASKING);
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
    this.#code = closeCodes[reason];
    this.#socket.end(`${endingText(reason)}\n`);
    // What still arrives is read past, so that the last line is not lost with a reset.
    this.#socket.resume();
  }

  destroy(): void {
    this.#socket.destroy();
  }

  #receive(chunk: Buffer): void {
    if (!this.#isOpen) return;
    for (const event of this.#lines.take(chunk)) {
      if ('problem' in event) this.#listener!.failed(event.problem);
      else this.#listener!.received(event.text);
      if (!this.#isOpen) return;
    }
  }
}

/** Resolves once a socket takes more, or is gone. */
export function drained(socket: Socket): Promise<void> {
  if (!socket.writableNeedDrain || socket.destroyed) return Promise.resolve();
  return new Promise((resolve) => {
    const done = (): void => {
      socket.off('drain', done);
      socket.off('close', done);
      resolve();
    };
    socket.on('drain', done);
    socket.on('close', done);
  });
}

function ignore(): void {}
