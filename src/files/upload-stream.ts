import { finished, Transform, type Readable, type TransformCallback } from 'node:stream';
import { KlatchError } from '../errors.ts';
import { SNIFFED_BYTES } from './media-type.ts';

/** The minimum speed: a client that transfers fewer bytes in a window counts as stalled. */
export interface MinThroughput {
  readonly windowMs: number;
  readonly windowBytes: number;
}

/**
 * The minimum speed of uploads and downloads: 820 bytes a second, the speed of the slowest telephone line. The window
 * is shorter than the 30 s after which the HTTP listener closes a dead connection.
 */
export const MIN_UPLOAD_AND_DOWNLOAD_THROUGHPUT: MinThroughput = { windowMs: 20_000, windowBytes: 16 * 1024 };

/** Thrown when the source ends before its last byte, because its client has disconnected. */
export class SourceAbortedError extends Error {
  override readonly name = 'SourceAbortedError';
}

export interface UploadStreamOptions {
  /** The most bytes that the stream passes on. One byte more fails the stream with the error of `createExcessError`. */
  readonly maxBytes: number;
  readonly createExcessError: () => Error;
  /** Awaited before the stream passes on `receivedBytes` bytes in total. Rejects if the quota is used up. */
  readonly reserveQuota: ((receivedBytes: number) => Promise<void>) | null;
  readonly bounds: MinThroughput;
}

/**
 * Passes a client's bytes on to the store, and counts them. The stream fails if its source fails, has too many bytes,
 * or is too slow for another reason than the store. Never destroys the source, so that the client can still get an
 * answer.
 */
export class UploadStream extends Transform {
  readonly #options: UploadStreamOptions;
  readonly #source: Readable;
  readonly #throughputTimer: NodeJS.Timeout;
  #firstBytes: Buffer = Buffer.alloc(0);
  #receivedBytes = 0;
  #bytesInWindow = 0;
  #isWaitingForQuota = false;
  #lastByteAt = performance.now();

  constructor(source: Readable, options: UploadStreamOptions) {
    super();
    this.#options = options;
    this.#source = source;
    this.#throughputTimer = setInterval(() => this.#checkThroughput(), options.bounds.windowMs);
    // Prevents the end of the process if the stream fails while nothing reads it. A reader gets the failure anyway.
    this.on('error', () => {});
    finished(source, { writable: false }, (error) => {
      if (error) this.destroy(new SourceAbortedError('the source ended before its time', { cause: error }));
    });
    source.pipe(this);
  }

  /** The number of bytes that came from the source so far. */
  get receivedBytes(): number {
    return this.#receivedBytes;
  }

  /** The first bytes of the stream, from which the file's type is recognized. */
  get firstBytes(): Buffer {
    return this.#firstBytes;
  }

  /** The time in milliseconds since bytes last arrived. */
  get idleMs(): number {
    return performance.now() - this.#lastByteAt;
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    const { maxBytes, createExcessError, reserveQuota } = this.#options;
    this.#receivedBytes += chunk.length;
    this.#bytesInWindow += chunk.length;
    this.#lastByteAt = performance.now();
    if (this.#receivedBytes > maxBytes) {
      done(createExcessError());
      return;
    }
    // `concat` makes a copy: a slice of the chunk would keep the whole chunk in memory.
    if (this.#firstBytes.length < SNIFFED_BYTES) {
      this.#firstBytes = Buffer.concat([this.#firstBytes, chunk.subarray(0, SNIFFED_BYTES - this.#firstBytes.length)]);
    }
    if (reserveQuota === null) {
      done(null, chunk);
      return;
    }
    void this.#reserveAndPass(chunk, reserveQuota, done);
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    clearInterval(this.#throughputTimer);
    this.#source.unpipe(this);
    done(error);
  }

  async #reserveAndPass(
    chunk: Buffer,
    reserveQuota: (receivedBytes: number) => Promise<void>,
    done: TransformCallback,
  ): Promise<void> {
    this.#isWaitingForQuota = true;
    let refusal: Error | null = null;
    try {
      await reserveQuota(this.#receivedBytes);
    } catch (error) {
      refusal = error as Error;
    }
    this.#isWaitingForQuota = false;
    if (refusal === null) done(null, chunk);
    else done(refusal);
  }

  #checkThroughput(): void {
    const isServerCausingDelay =
      this.#isWaitingForQuota || this.readableLength > 0 || this.writableLength > 0 || this.writableEnded;
    if (!isServerCausingDelay && this.#bytesInWindow < this.#options.bounds.windowBytes) {
      const sentence = 'The file came too slowly, or stopped coming; what is not complete can be sent again';
      this.destroy(new KlatchError('request_timeout', { sentence }));
    }
    this.#bytesInWindow = 0;
  }
}
