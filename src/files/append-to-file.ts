import type { FileHandle } from 'node:fs/promises';
import { freeChunkMemory } from './pipe-and-free-chunks.ts';
import type { ChunkBuffer } from './chunk-buffer.ts';

/**
 * After so many bytes what is written is made safe, beside the writing that goes on: an upload that is cut or killed
 * goes on from there, and the disk has begun before the end comes.
 */
export const SYNC_INTERVAL_BYTES = 32 * 1024 * 1024;
/** Slow uploads are made safe by the clock. */
const SYNC_INTERVAL_MS = 5_000;

/** What came of an append. */
export interface AppendResult {
  /** Where the safe bytes end. */
  readonly durableBytes: number;
  /** Why the source ended before its time; null: it ended well. */
  readonly sourceError: Error | null;
}

/**
 * Writes what is gathered of a stream to an open file from `start` on, and syncs its data; the folder is not synced. `onDurable` is
 * told how far that is as it goes on. Rejects with the error of the file system; then nothing behind the last `onDurable`
 * counts, since the kernel reports a failed write once.
 */
export async function appendToFile(
  handle: FileHandle,
  start: number,
  {
    buffer,
    onDurable,
    mayFreeChunks,
  }: { buffer: ChunkBuffer; onDurable: (durableBytes: number) => void; mayFreeChunks: boolean },
): Promise<AppendResult> {
  const syncing = new BackgroundSync(handle, start, onDurable);
  let position = start;
  try {
    for (;;) {
      const chunks = await buffer.take();
      if (chunks === null) break;
      position += await writeAllAndCountBytes(handle, chunks, position);
      if (mayFreeChunks) for (const chunk of chunks) freeChunkMemory(chunk);
      syncing.syncIfDue(position);
    }
  } finally {
    await syncing.waitUntilIdle();
  }
  await syncing.syncRemaining(position);
  return { durableBytes: position, sourceError: buffer.error };
}

/** Writes all of it; a disk that fills up takes a part first, and refuses the rest. */
async function writeAllAndCountBytes(handle: FileHandle, chunks: readonly Buffer[], position: number): Promise<number> {
  let left = chunks;
  let written = 0;
  while (left.length > 0) {
    const { bytesWritten } = await handle.writev(left, position + written);
    written += bytesWritten;
    left = skipBytes(left, bytesWritten);
  }
  return written;
}

function skipBytes(chunks: readonly Buffer[], bytes: number): readonly Buffer[] {
  let skipped = bytes;
  for (const [index, chunk] of chunks.entries()) {
    if (skipped < chunk.length) return [chunk.subarray(skipped), ...chunks.slice(index + 1)];
    skipped -= chunk.length;
  }
  return [];
}

/** One sync at a time, beside the writes. */
class BackgroundSync {
  readonly #handle: FileHandle;
  readonly #onDurable: (durableBytes: number) => void;
  #durableBytes: number;
  #lastSyncEndedAt = performance.now();
  #runningSync: Promise<void> | null = null;
  #syncError: unknown = null;

  constructor(handle: FileHandle, start: number, onDurable: (durableBytes: number) => void) {
    this.#handle = handle;
    this.#durableBytes = start;
    this.#onDurable = onDurable;
  }

  /** Throws what the last sync failed with. */
  syncIfDue(position: number): void {
    if (this.#syncError !== null) throw this.#syncError;
    const isDue =
      position - this.#durableBytes >= SYNC_INTERVAL_BYTES ||
      performance.now() - this.#lastSyncEndedAt >= SYNC_INTERVAL_MS;
    if (isDue && this.#runningSync === null) this.#runningSync = this.#sync(position);
  }

  async waitUntilIdle(): Promise<void> {
    await this.#runningSync;
  }

  async syncRemaining(position: number): Promise<void> {
    if (this.#syncError === null && this.#durableBytes < position) await this.#sync(position);
    if (this.#syncError !== null) throw this.#syncError;
  }

  async #sync(position: number): Promise<void> {
    try {
      await this.#handle.datasync();
      this.#durableBytes = position;
      this.#onDurable(position);
    } catch (error) {
      this.#syncError = error;
    }
    this.#lastSyncEndedAt = performance.now();
    this.#runningSync = null;
  }
}
