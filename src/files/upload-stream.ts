import { finished, Transform, type Readable, type TransformCallback } from 'node:stream';
import { KlatchError } from '../errors.ts';
import { SNIFFED_BYTES } from './media-type.ts';

/** The minimum speed: a client that transfers fewer bytes in a window counts as stalled. */
export interface MinThroughput {
  readonly windowMs: number;
  readonly windowBytes: number;
}

/**
 * 820 bytes a second, the speed of the slowest telephone line. The window is shorter than the 30 s after which the
 * listener cuts a dead connection.
 */
export const MIN_UPLOAD_AND_DOWNLOAD_THROUGHPUT: MinThroughput = { windowMs: 20_000, windowBytes: 16 * 1024 };

/** The source ended early: its client has disconnected. */
export class SourceAbortedError extends Error {
  override readonly name = 'SourceAbortedError';
}

export interface UploadStreamOptions {
  /** The most bytes of the stream. The next byte fails the stream with the error of `createExcessError`. */
  readonly maxBytes: number;
  readonly createExcessError: () => Error;
  /** Awaited before the byte with the number `receivedBytes` passes; rejects where there is no space. */
  readonly reserveQuota: ((receivedBytes: number) => Promise<void>) | null;
  readonly bounds: MinThroughput;
}

/**
 * A client's bytes on their way to the store: counted, bounded and watched. The stream fails if its source fails or is
 * too long. The stream also fails if the source is too slow, unless the store delays it. It does not destroy the
 * source, so that the client can still get an answer.
 */
export class UploadStream extends Transform {
  readonly #options: UploadStreamOptions;
  readonly #source: Readable;
  readonly #throughputTimer: NodeJS.Timeout;
  #head: Buffer = Buffer.alloc(0);
  #receivedBytes = 0;
  #bytesInWindow = 0;
  #isWaitingForQuota = false;
  #lastByteAt = performance.now();

  constructor(source: Readable, options: UploadStreamOptions) {
    super();
    this.#options = options;
    this.#source = source;
    this.#throughputTimer = setInterval(() => this.#checkThroughput(), options.bounds.windowMs);
    // A reader of this stream gets the failure anyway; a failure without a reader must not end the process.
    this.on('error', () => {});
    finished(source, { writable: false }, (error) => {
      if (error) this.destroy(new SourceAbortedError('the source ended before its time', { cause: error }));
    });
    source.pipe(this);
  }

  /** Received bytes. */
  get receivedBytes(): number {
    return this.#receivedBytes;
  }

  /** The stream's first bytes, as many as identify the file's type. */
  get head(): Buffer {
    return this.#head;
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
    // A copy: a slice would keep the whole chunk in memory.
    if (this.#head.length < SNIFFED_BYTES) {
      this.#head = Buffer.concat([this.#head, chunk.subarray(0, SNIFFED_BYTES - this.#head.length)]);
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
    const isBlocked =
      this.#isWaitingForQuota || this.readableLength > 0 || this.writableLength > 0 || this.writableEnded;
    if (!isBlocked && this.#bytesInWindow < this.#options.bounds.windowBytes) {
      const sentence = 'The file came too slowly, or stopped coming; what is not complete can be sent again';
      this.destroy(new KlatchError('request_timeout', { sentence }));
    }
    this.#bytesInWindow = 0;
  }
}
