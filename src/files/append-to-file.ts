import type { FileHandle } from 'node:fs/promises';
import { freeChunkMemory } from './pipe-and-free-chunks.ts';
import type { ChunkBuffer } from './chunk-buffer.ts';

/**
 * Each time this many bytes were written, the file is synced (fdatasync), while the writes continue. An interrupted
 * upload resumes from the synced bytes, and the disk starts to write before the upload ends.
 */
export const SYNC_INTERVAL_BYTES = 32 * 1024 * 1024;
/** The data of a slow upload is synced after this time, even if it has fewer than SYNC_INTERVAL_BYTES. */
const SYNC_INTERVAL_MS = 5_000;

export interface AppendResult {
  /** The position up to which the file's data is synced. */
  readonly durableBytes: number;
  /** Why the source ended early; null: the source ended normally. */
  readonly sourceError: Error | null;
}

/**
 * Writes a stream's buffered chunks to an open file, from the position `startPosition`, and syncs the file's data but
 * not its folder. Calls `onDurable` repeatedly, with the position up to which the data is synced. Rejects with the
 * error of the file system. Bytes after the last `onDurable` may then be lost, since the kernel reports a failed write
 * only once.
 */
export async function appendToFile(
  handle: FileHandle,
  startPosition: number,
  {
    buffer,
    onDurable,
    mayFreeChunks,
  }: { buffer: ChunkBuffer; onDurable: (durableBytes: number) => void; mayFreeChunks: boolean },
): Promise<AppendResult> {
  const syncing = new BackgroundSync(handle, startPosition, onDurable);
  let position = startPosition;
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
  return { durableBytes: position, sourceError: buffer.sourceError };
}

/**
 * Writes all chunks, in several calls if necessary: a disk that fills up first accepts a part of them, and then refuses
 * the rest.
 */
async function writeAllAndCountBytes(handle: FileHandle, chunks: readonly Buffer[], position: number): Promise<number> {
  let remainingChunks = chunks;
  let writtenBytes = 0;
  while (remainingChunks.length > 0) {
    const { bytesWritten } = await handle.writev(remainingChunks, position + writtenBytes);
    writtenBytes += bytesWritten;
    remainingChunks = skipBytes(remainingChunks, bytesWritten);
  }
  return writtenBytes;
}

function skipBytes(chunks: readonly Buffer[], bytes: number): readonly Buffer[] {
  let bytesToSkip = bytes;
  for (const [index, chunk] of chunks.entries()) {
    if (bytesToSkip < chunk.length) return [chunk.subarray(bytesToSkip), ...chunks.slice(index + 1)];
    bytesToSkip -= chunk.length;
  }
  return [];
}

/** Runs one sync at a time, parallel to the writes. */
class BackgroundSync {
  readonly #handle: FileHandle;
  readonly #onDurable: (durableBytes: number) => void;
  #durableBytes: number;
  #lastSyncEndedAt = performance.now();
  #runningSync: Promise<void> | null = null;
  #syncError: unknown = null;

  constructor(handle: FileHandle, startPosition: number, onDurable: (durableBytes: number) => void) {
    this.#handle = handle;
    this.#durableBytes = startPosition;
    this.#onDurable = onDurable;
  }

  /** Starts a sync if one is due and none is running. Throws the error of an earlier sync. */
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
