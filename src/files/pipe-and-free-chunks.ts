import type { Readable, Writable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { MIN_UPLOAD_AND_DOWNLOAD_THROUGHPUT, type MinThroughput } from './upload-stream.ts';

/**
 * Frees the memory of a chunk at once; no code may read the chunk afterwards. V8 collects the whole heap for about each
 * 40 MiB of buffers that it has not freed. With a server's heap, these collections took more CPU time than everything
 * else (measured: 2 of the 3 CPU seconds that a transfer of one GiB took). A chunk that is a part of shared memory is
 * left alone.
 */
export function freeChunkMemory(chunk: Buffer): void {
  const { buffer, byteOffset } = chunk;
  if (byteOffset === 0 && buffer.byteLength === chunk.length && buffer instanceof ArrayBuffer) buffer.transfer(0);
}

/**
 * Writes all bytes of the source to the sink and ends the sink. The source must have exactly `expectedBytes`. No other
 * code may hold the chunks: the memory of each is freed when it is written. Rejects when
 * - source or sink fails,
 * - the source has more bytes (then none beyond `expectedBytes` is written) or fewer, or
 * - the sink accepts fewer bytes in a window than `bounds` demands.
 *
 * Always destroys the source, but never the sink.
 */
export async function pipeAndFreeChunks(
  source: Readable,
  sink: Writable,
  expectedBytes: number,
  bounds: MinThroughput = MIN_UPLOAD_AND_DOWNLOAD_THROUGHPUT,
): Promise<void> {
  let remainingBytes = expectedBytes;
  const watchdog = new ThroughputWatchdog(bounds);
  const resume = (): void => void source.resume();
  source.on('data', (chunk: Buffer) => {
    remainingBytes -= chunk.length;
    if (remainingBytes < 0) {
      source.destroy(new Error('it is longer than it should be'));
      return;
    }
    watchdog.chunkWritten(chunk.length);
    const isReady = sink.write(chunk, () => {
      watchdog.chunkTaken();
      freeChunkMemory(chunk);
    });
    if (!isReady) source.pause();
  });
  sink.on('drain', resume);
  const sinkFinished = finished(sink, { cleanup: true });
  // Only the first failure is reported. A later failure of the sink may be a result of the first one, and must not end
  // the process.
  sinkFinished.catch(() => {});
  try {
    await Promise.race([
      finished(source, { cleanup: true }),
      sinkFinished.then(() => Promise.reject(new Error('it was ended'))),
      watchdog.tooSlowRejection,
    ]);
    if (remainingBytes > 0) throw new Error('it is shorter than it should be');
    sink.end();
    await Promise.race([sinkFinished, watchdog.tooSlowRejection]);
  } finally {
    watchdog.stop();
    sink.off('drain', resume);
    source.destroy();
  }
}

/**
 * Checks that the sink accepts chunks fast enough. A sink reports only whole chunks. So each chunk may take the time
 * for its length at the minimum speed, and one window more.
 */
class ThroughputWatchdog {
  /** Rejects when the sink takes too long for a chunk; never resolves. */
  readonly tooSlowRejection: Promise<never>;
  readonly #minThroughput: MinThroughput;
  readonly #timer: NodeJS.Timeout;
  readonly #untakenChunkLengths: number[] = [];
  #oldestUntakenChunkSinceMs = 0;

  constructor(bounds: MinThroughput) {
    this.#minThroughput = bounds;
    const { promise, reject } = Promise.withResolvers<never>();
    // Prevents an unhandled rejection: if the transfer has ended in another way, nothing awaits this promise.
    promise.catch(() => {});
    this.tooSlowRejection = promise;
    this.#timer = setInterval(() => {
      if (this.#isTooSlow()) reject(new Error('its client takes it too slowly'));
    }, bounds.windowMs);
  }

  chunkWritten(length: number): void {
    if (this.#untakenChunkLengths.length === 0) this.#oldestUntakenChunkSinceMs = performance.now();
    this.#untakenChunkLengths.push(length);
  }

  chunkTaken(): void {
    this.#untakenChunkLengths.shift();
    this.#oldestUntakenChunkSinceMs = performance.now();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #isTooSlow(): boolean {
    const [length] = this.#untakenChunkLengths;
    const { windowMs, windowBytes } = this.#minThroughput;
    return (
      length !== undefined &&
      performance.now() - this.#oldestUntakenChunkSinceMs > windowMs + (length * windowMs) / windowBytes
    );
  }
}
