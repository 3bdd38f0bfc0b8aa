import type { Readable } from 'node:stream';
import { finished } from 'node:stream';

/** The default size of the buffer in bytes. When the buffer is full, the source is paused. */
export const DEFAULT_MAX_BUFFERED_BYTES = 2 * 1024 * 1024;

/**
 * Buffers the chunks of a stream, so that reading continues while earlier chunks are written. Between two calls of
 * `take` the buffer has at most `maxBytes` and one chunk. A stream's own iterator would wait for each chunk, and a pipe
 * would write them one by one.
 */
export class ChunkBuffer {
  readonly #source: Readable;
  readonly #maxBytes: number;
  readonly #removeEndListener: () => void;
  readonly #onData = (chunk: Buffer): void => this.#add(chunk);
  #chunks: Buffer[] = [];
  #bufferedBytes = 0;
  #hasEnded = false;
  #sourceError: Error | null = null;
  #wake: () => void = () => {};

  constructor(source: Readable, maxBytes = DEFAULT_MAX_BUFFERED_BYTES) {
    this.#source = source;
    this.#maxBytes = maxBytes;
    // The listener is added before the first chunk: a source that has already failed reports that in the next turn of
    // the event loop.
    this.#removeEndListener = finished(source, { writable: false }, (error) => this.#end(error ?? null));
    source.on('data', this.#onData);
  }

  /** Why the source ended early; null: the source ended normally, or has not ended. */
  get sourceError(): Error | null {
    return this.#sourceError;
  }

  /**
   * Waits for chunks, and returns all that came since the last `take`. Null: the source has ended, and all chunks were
   * taken.
   */
  async take(): Promise<Buffer[] | null> {
    if (this.#bufferedBytes === 0 && !this.#hasEnded) await new Promise<void>((resolve) => (this.#wake = resolve));
    if (this.#bufferedBytes === 0) return null;
    const chunks = this.#chunks;
    this.#chunks = [];
    this.#bufferedBytes = 0;
    if (!this.#hasEnded) this.#source.resume();
    return chunks;
  }

  /** Detaches from the source and pauses it, but does not destroy it. Idempotent. */
  detachAndPause(): void {
    this.#source.off('data', this.#onData);
    // If the source has not ended, its listener for the end stays: a later failure without a listener would end the
    // process.
    if (this.#hasEnded) this.#removeEndListener();
    else this.#source.pause();
  }

  #add(chunk: Buffer): void {
    if (chunk.length === 0) return;
    this.#chunks.push(chunk);
    this.#bufferedBytes += chunk.length;
    if (this.#bufferedBytes >= this.#maxBytes) this.#source.pause();
    this.#wake();
  }

  #end(error: Error | null): void {
    this.#hasEnded = true;
    this.#sourceError = error;
    this.#wake();
  }
}
