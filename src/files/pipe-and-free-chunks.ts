import type { Readable, Writable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { MIN_UPLOAD_AND_DOWNLOAD_THROUGHPUT, type MinThroughput } from './upload-stream.ts';

/**
 * Gives the memory of a chunk back at once, which nobody may read any more. V8 collects the whole heap for each 40 MiB
 * or so of buffers that it has not seen die: with a server's heap that took more than all the rest of a transfer
 * (measured: 2 of 3 CPU seconds of a GiB). A part of somebody else's memory is left alone.
 */
export function freeChunkMemory(chunk: Buffer): void {
  const { buffer, byteOffset } = chunk;
  if (byteOffset === 0 && buffer.byteLength === chunk.length && buffer instanceof ArrayBuffer) buffer.transfer(0);
}

/**
 * Writes all that a stream gives, which has to be `length` bytes, and ends what it writes to. The chunks have to be
 * nobody else's: each is released when it is written. Rejects when either fails, the length is another one, before a
 * byte too many is written, or the sink takes fewer bytes than `bounds` ask for while the source waits for it. Destroys
 * the source then; the sink is the caller's.
 */
export async function pipeAndFreeChunks(
  source: Readable,
  sink: Writable,
  length: number,
  bounds: MinThroughput = MIN_UPLOAD_AND_DOWNLOAD_THROUGHPUT,
): Promise<void> {
  let remaining = length;
  const watchdog = new ThroughputWatchdog(bounds);
  const resume = (): void => void source.resume();
  source.on('data', (chunk: Buffer) => {
    remaining -= chunk.length;
    if (remaining < 0) {
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
  // Whichever fails first tells; the other's failure follows from it.
  sinkFinished.catch(() => {});
  try {
    await Promise.race([
      finished(source, { cleanup: true }),
      sinkFinished.then(() => Promise.reject(new Error('it was ended'))),
      watchdog.tooSlow,
    ]);
    if (remaining > 0) throw new Error('it is shorter than it should be');
    sink.end();
    await Promise.race([sinkFinished, watchdog.tooSlow]);
  } finally {
    watchdog.stop();
    sink.off('drain', resume);
    source.destroy();
  }
}

/**
 * Whether chunks are taken fast enough. A chunk is known to be taken only as a whole, so that each has the time that the
 * least speed gives to its length, and one window more.
 */
class ThroughputWatchdog {
  /** Rejects when a chunk takes too long. */
  readonly tooSlow: Promise<never>;
  readonly #minThroughput: MinThroughput;
  readonly #timer: NodeJS.Timeout;
  readonly #pendingLengths: number[] = [];
  #oldestUntakenChunkSinceMs = 0;

  constructor(bounds: MinThroughput) {
    this.#minThroughput = bounds;
    const { promise, reject } = Promise.withResolvers<never>();
    // Nobody awaits it when the transfer ends otherwise.
    promise.catch(() => {});
    this.tooSlow = promise;
    this.#timer = setInterval(() => {
      if (this.#isTooSlow()) reject(new Error('its client takes it too slowly'));
    }, bounds.windowMs);
  }

  chunkWritten(length: number): void {
    if (this.#pendingLengths.length === 0) this.#oldestUntakenChunkSinceMs = performance.now();
    this.#pendingLengths.push(length);
  }

  chunkTaken(): void {
    this.#pendingLengths.shift();
    this.#oldestUntakenChunkSinceMs = performance.now();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #isTooSlow(): boolean {
    const [length] = this.#pendingLengths;
    const { windowMs, windowBytes } = this.#minThroughput;
    return (
      length !== undefined &&
      performance.now() - this.#oldestUntakenChunkSinceMs > windowMs + (length * windowMs) / windowBytes
    );
  }
}
