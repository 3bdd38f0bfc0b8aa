import type { FileHandle } from 'node:fs/promises';
import { releaseChunk } from './chunk-memory.ts';
import type { Gathering } from './gathering.ts';

/**
 * After so many bytes what is written is made safe, beside the writing that goes on: an upload that is cut or killed
 * goes on from there, and the disk has begun before the end comes.
 */
export const SYNC_BYTES = 32 * 1024 * 1024;
/** Slow uploads are made safe by the clock. */
const SYNC_MS = 5_000;

/** What came of an append. */
export interface Appended {
  /** Where the safe bytes end. */
  readonly safe: number;
  /** Why the source ended before its time; null: it ended well. */
  readonly sourceError: Error | null;
}

/**
 * Writes what is gathered of a stream to an open file from `start` on, and syncs its data; the folder is not synced. `onSafe` is
 * told how far that is as it goes on. Rejects with the error of the file system; then nothing behind the last `onSafe`
 * counts, since the kernel reports a failed write once.
 */
export async function appendToFile(
  handle: FileHandle,
  start: number,
  { gathering, onSafe, isOwned }: { gathering: Gathering; onSafe: (safe: number) => void; isOwned: boolean },
): Promise<Appended> {
  const syncing = new BackgroundSync(handle, start, onSafe);
  let position = start;
  try {
    for (;;) {
      const chunks = await gathering.take();
      if (chunks === null) break;
      position += await writeAll(handle, chunks, position);
      if (isOwned) for (const chunk of chunks) releaseChunk(chunk);
      syncing.reached(position);
    }
  } finally {
    await syncing.settled();
  }
  await syncing.finish(position);
  return { safe: position, sourceError: gathering.error };
}

/** Writes all of it; a disk that fills up takes a part first, and refuses the rest. */
async function writeAll(handle: FileHandle, chunks: readonly Buffer[], position: number): Promise<number> {
  let left = chunks;
  let written = 0;
  while (left.length > 0) {
    const { bytesWritten } = await handle.writev(left, position + written);
    written += bytesWritten;
    left = behind(left, bytesWritten);
  }
  return written;
}

function behind(chunks: readonly Buffer[], bytes: number): readonly Buffer[] {
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
  readonly #onSafe: (safe: number) => void;
  #safe: number;
  #endedAt = performance.now();
  #running: Promise<void> | null = null;
  #error: unknown = null;

  constructor(handle: FileHandle, start: number, onSafe: (safe: number) => void) {
    this.#handle = handle;
    this.#safe = start;
    this.#onSafe = onSafe;
  }

  /** Throws what the last sync failed with. */
  reached(position: number): void {
    if (this.#error !== null) throw this.#error;
    const isDue = position - this.#safe >= SYNC_BYTES || performance.now() - this.#endedAt >= SYNC_MS;
    if (isDue && this.#running === null) this.#running = this.#sync(position);
  }

  async settled(): Promise<void> {
    await this.#running;
  }

  async finish(position: number): Promise<void> {
    if (this.#error === null && this.#safe < position) await this.#sync(position);
    if (this.#error !== null) throw this.#error;
  }

  async #sync(position: number): Promise<void> {
    try {
      await this.#handle.datasync();
      this.#safe = position;
      this.#onSafe(position);
    } catch (error) {
      this.#error = error;
    }
    this.#endedAt = performance.now();
    this.#running = null;
  }
}
