import { createHash } from 'node:crypto';
import type { Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import type { ConnectionTarget } from '../db/connection.ts';
import { BackupError, HEADER_FILE_NAME, MANIFEST_FILE_NAME, PART_BYTES, partName } from './format.ts';
import type { BackupConfiguration, BackupHeader, BackupManifest, BackupTable } from './format.ts';
import { withSnapshot, type SnapshotReader } from './snapshot.ts';
import { StallDetector } from './stall-detector.ts';
import { encodeTarEnd, encodeTarFile } from './tar.ts';

/** Level 6 would make a backup 3 % smaller than level 4, but take three times the processor time. */
const GZIP_OPTIONS = { level: 4, chunkSize: 64 * 1024 };
const NEWLINE = 0x0a;

/** The progress of a copy, reported repeatedly. */
export interface CopyProgress {
  readonly table: string;
  /** The rows of all tables so far. */
  readonly rows: number;
  /** The bytes so far, before compression. */
  readonly bytes: number;
}

/** The files of the configuration, by their names in the archive. */
export interface ConfigurationFiles {
  readonly record: BackupConfiguration;
  readonly configurationFileContents: ReadonlyMap<string, Buffer>;
}

export interface WriteOptions {
  readonly configuration: ConfigurationFiles;
  /** The version of Klatch. */
  readonly klatchVersion: string;
  readonly onProgress?: (progress: CopyProgress) => void;
  /** Aborts the backup, with the reason of the signal. */
  readonly signal?: AbortSignal;
  readonly stallTimeoutMs?: number;
}

/** The contents of a backup. */
export interface WrittenBackup {
  readonly header: BackupHeader;
  readonly manifest: BackupManifest;
}

/**
 * Writes a backup of a database into a stream, and ends the stream. Memory holds one part and the buffers of the
 * streams, however large the database is. Rejects with the rejections of `withSnapshot`, the stream's error, and
 * BackupError after a stall.
 */
export async function writeBackup(
  target: ConnectionTarget,
  output: Writable,
  options: WriteOptions,
): Promise<WrittenBackup> {
  const { klatchVersion: version, stallTimeoutMs } = options;
  const watch = new StallDetector(
    () => new BackupError('Nothing moved for too long: the database sends nothing, or what is written is not taken.'),
    stallTimeoutMs,
  );
  const onAbort = (): void => watch.abort(options.signal?.reason as Error);
  options.signal?.addEventListener('abort', onAbort);
  watch.start();
  try {
    options.signal?.throwIfAborted();
    return await withSnapshot(target, { klatchVersion: version, signal: watch.signal }, async (snapshot) => {
      const writer = new ArchiveWriter(snapshot, options, () => watch.recordProgress());
      await pipeline(writer.chunks(), createGzip(GZIP_OPTIONS), output, { signal: watch.signal });
      return { header: writer.header, manifest: writer.manifest };
    });
  } finally {
    watch.stop();
    options.signal?.removeEventListener('abort', onAbort);
  }
}

/** Produces the bytes of the archive, before compression. */
class ArchiveWriter {
  readonly header: BackupHeader;
  readonly manifest: { parts: BackupManifest['parts']; rows: BackupManifest['rows'] } = { parts: [], rows: {} };
  readonly #snapshot: SnapshotReader;
  readonly #options: WriteOptions;
  readonly #recordProgress: () => void;
  #totalBytes = 0;
  #totalRows = 0;

  constructor(snapshot: SnapshotReader, options: WriteOptions, recordProgress: () => void) {
    this.header = { ...snapshot.header, configuration: options.configuration.record };
    this.#snapshot = snapshot;
    this.#options = options;
    this.#recordProgress = recordProgress;
  }

  async *chunks(): AsyncGenerator<Buffer, void, undefined> {
    yield* this.#file(HEADER_FILE_NAME, [json(this.header)]);
    const { record, configurationFileContents } = this.#options.configuration;
    for (const { name } of record.files)
      yield* this.#file(name, [configurationFileContents.get(name) ?? Buffer.alloc(0)]);
    for (const table of this.header.tables) yield* this.#tableChunks(table);
    yield* encodeTarFile(MANIFEST_FILE_NAME, [json(this.manifest)], this.#takenAt);
    yield encodeTarEnd();
  }

  async *#tableChunks(table: BackupTable): AsyncGenerator<Buffer, void, undefined> {
    this.manifest.rows[table.name] = 0;
    let part: Buffer[] = [];
    let partBytes = 0;
    let parts = 0;
    for await (const chunk of this.#snapshot.copy(table)) {
      this.#recordProgress();
      part.push(chunk);
      partBytes += chunk.length;
      if (partBytes < PART_BYTES) continue;
      parts += 1;
      yield* this.#partFile(table, parts, part);
      part = [];
      partBytes = 0;
    }
    if (partBytes > 0) yield* this.#partFile(table, parts + 1, part);
  }

  *#partFile(table: BackupTable, index: number, content: readonly Buffer[]): Generator<Buffer> {
    const rows = content.reduce((sum, chunk) => sum + countRows(chunk), 0);
    this.manifest.rows[table.name]! += rows;
    this.#totalRows += rows;
    yield* this.#file(partName(table.name, index), content, rows);
    this.#options.onProgress?.({ table: table.name, rows: this.#totalRows, bytes: this.#totalBytes });
  }

  /** Each chunk that the consumer takes counts as progress, so that a slow disk is not a stall. */
  *#file(name: string, content: readonly Buffer[], rows?: number): Generator<Buffer> {
    const hash = createHash('sha256');
    let bytes = 0;
    for (const chunk of content) {
      hash.update(chunk);
      bytes += chunk.length;
    }
    this.#totalBytes += bytes;
    const sha256 = hash.digest('hex');
    this.manifest.parts.push({ name, bytes, sha256, ...(rows === undefined ? {} : { rows }) });
    for (const chunk of encodeTarFile(name, content, this.#takenAt)) {
      this.#recordProgress();
      yield chunk;
    }
  }

  get #takenAt(): Date {
    return new Date(this.header.taken_at);
  }
}

/** Counts the rows in a chunk. In the text format of `copy` a line is a row: line breaks in values are escaped. */
export function countRows(chunk: Buffer): number {
  let count = 0;
  for (let at = chunk.indexOf(NEWLINE); at >= 0; at = chunk.indexOf(NEWLINE, at + 1)) count += 1;
  return count;
}

function json(value: unknown): Buffer {
  return Buffer.from(`${JSON.stringify(value, null, 1)}\n`);
}
