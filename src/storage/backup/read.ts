import { createHash } from 'node:crypto';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { isDeepStrictEqual } from 'node:util';
import { createGunzip } from 'node:zlib';
import type { z } from 'zod';
import {
  BackupError,
  BACKUP_FORMAT_VERSION,
  HEADER_FILE_NAME,
  headerSchema,
  MANIFEST_FILE_NAME,
  manifestSchema,
} from './format.ts';
import { MAX_WHOLE_ENTRY_BYTES, tableOfPart } from './format.ts';
import type { BackupHeader, BackupManifest, ManifestPart } from './format.ts';
import { readTar, TarError, type TarEntry } from './tar.ts';
import { countRows } from './write.ts';

/** Callbacks for the contents of a backup, in the order of the archive. If one of them rejects, the reading ends. */
interface BackupVisitor {
  /** Called with the header, before all other callbacks. */
  header?(header: BackupHeader): Promise<void> | void;
  /** Called for each file of the configuration, with its name in the archive. */
  configuration?(name: string, content: Buffer): Promise<void> | void;
  /**
   * Called for each table that has rows, with all its rows in the text format of `copy`. The callback must read them to
   * their end.
   */
  rows?(table: string, content: AsyncGenerator<Buffer, void, undefined>): Promise<void>;
}

/** A backup that was read and is complete. */
export interface ReadBackupResult {
  readonly header: BackupHeader;
  readonly manifest: BackupManifest;
}

/**
 * Reads a backup from its beginning to its end and checks it: every part against its checksum, and that none is
 * missing. Callers must not trust its output before it resolves. Rejects with BackupError in one sentence (not a
 * backup, of a newer format, truncated, altered), with the stream's own error, or with the visitor's rejection.
 */
export async function readBackup(input: Readable, visitor: BackupVisitor): Promise<ReadBackupResult> {
  const gunzip = createGunzip();
  // The reader below gets the same error from `gunzip`, and reports it.
  pipeline(input, gunzip).catch(() => {});
  const reader = new ArchiveReader(readTar(gunzip as AsyncIterable<Buffer>), visitor);
  try {
    return await reader.read();
  } catch (error) {
    throw toBackupError(error, reader.hasBackupHeader);
  } finally {
    gunzip.destroy();
    input.destroy();
  }
}

class ArchiveReader {
  readonly #entries: AsyncGenerator<TarEntry, void, undefined>;
  readonly #visitor: BackupVisitor;
  readonly #readParts: ManifestPart[] = [];
  readonly #rowsByTable = new Map<string, number>();
  #currentEntry: TarEntry | null = null;
  /** Whether the input begins with the header of a backup. */
  hasBackupHeader = false;

  constructor(entries: AsyncGenerator<TarEntry, void, undefined>, visitor: BackupVisitor) {
    this.#entries = entries;
    this.#visitor = visitor;
  }

  async read(): Promise<ReadBackupResult> {
    const header = await this.#readHeader();
    await this.#visitor.header?.(header);
    const names = new Set(header.configuration.files.map(({ name }) => name));
    const tables = new Set(header.tables.map(({ name }) => name));
    while (this.#currentEntry !== null && this.#currentEntry.name !== MANIFEST_FILE_NAME) {
      const { name } = this.#currentEntry;
      const table = tableOfPart(name);
      if (table !== null && tables.delete(table)) {
        await this.#visitTable(table);
      } else if (names.delete(name)) {
        const content = await this.#readWholeEntry();
        await this.#visitor.configuration?.(name, content);
        await this.#advanceToNextEntry();
      } else {
        throw alteredError(`holds ${JSON.stringify(name)}, which does not belong into it`);
      }
    }
    if (this.#currentEntry === null) throw truncatedError();
    if (names.size > 0) throw alteredError('lacks a file of the configuration');
    const manifest = parse(manifestSchema, await this.#readWholeEntry({ counted: false }));
    await this.#advanceToNextEntry();
    if (this.#currentEntry !== null) throw alteredError('goes on behind its end');
    this.#verifyPartsAndRows(header, manifest);
    return { header, manifest };
  }

  async #readHeader(): Promise<BackupHeader> {
    await this.#advanceToNextEntry();
    if (this.#currentEntry?.name !== HEADER_FILE_NAME) throw notABackupError();
    const headerJson = await this.#readWholeEntry();
    const { format } = parse(headerSchema.pick({ format: true }), headerJson);
    this.hasBackupHeader = true;
    if (format > BACKUP_FORMAT_VERSION) {
      throw new BackupError(
        `This backup has format ${format}, and this Klatch reads up to ${BACKUP_FORMAT_VERSION}: use the newer Klatch that made it.`,
      );
    }
    const header = parse(headerSchema, headerJson);
    await this.#advanceToNextEntry();
    return header;
  }

  async #advanceToNextEntry(): Promise<void> {
    const next = await this.#entries.next();
    this.#currentEntry = next.done === true ? null : next.value;
  }

  async #visitTable(table: string): Promise<void> {
    this.#rowsByTable.set(table, 0);
    const content = this.#tableContent(table);
    await this.#visitor.rows?.(table, content);
    for await (const _ of content);
  }

  /** The consecutive parts of a table, as one stream. */
  async *#tableContent(table: string): AsyncGenerator<Buffer, void, undefined> {
    while (this.#currentEntry !== null && tableOfPart(this.#currentEntry.name) === table) {
      let rows = 0;
      for await (const chunk of this.#hashAndRecordPart(this.#currentEntry, () => rows)) {
        rows += countRows(chunk);
        yield chunk;
      }
      this.#rowsByTable.set(table, this.#rowsByTable.get(table)! + rows);
      await this.#advanceToNextEntry();
    }
  }

  /** The content of a file. At its end the reader records size and checksum, to compare them with the manifest. */
  async *#hashAndRecordPart(entry: TarEntry, rows?: () => number): AsyncGenerator<Buffer, void, undefined> {
    const hash = createHash('sha256');
    let bytes = 0;
    for await (const chunk of entry.content) {
      hash.update(chunk);
      bytes += chunk.length;
      yield chunk;
    }
    const counted = rows === undefined ? {} : { rows: rows() };
    this.#readParts.push({ name: entry.name, bytes, sha256: hash.digest('hex'), ...counted });
  }

  async #readWholeEntry({ counted = true } = {}): Promise<Buffer> {
    const entry = this.#currentEntry!;
    if (entry.size > MAX_WHOLE_ENTRY_BYTES)
      throw alteredError(`holds ${entry.name} with ${entry.size} bytes, which is too much`);
    const chunks: Buffer[] = [];
    for await (const chunk of counted ? this.#hashAndRecordPart(entry) : entry.content) chunks.push(chunk);
    return Buffer.concat(chunks);
  }

  #verifyPartsAndRows(header: BackupHeader, manifest: BackupManifest): void {
    if (this.#readParts.length !== manifest.parts.length) throw alteredError('has other parts than its manifest names');
    const wrong = manifest.parts.find((part, index) => !isDeepStrictEqual(part, this.#readParts[index]));
    if (wrong !== undefined) throw alteredError(`is not what was written: ${wrong.name} does not have its checksum`);
    const rows = header.tables.map(({ name }) => [name, this.#rowsByTable.get(name) ?? 0]);
    if (!isDeepStrictEqual(Object.fromEntries(rows), { ...manifest.rows })) throw alteredError('lacks rows');
  }
}

function parse<T>(schema: z.ZodType<T>, text: Buffer): T {
  try {
    return schema.parse(JSON.parse(text.toString('utf8')));
  } catch (cause) {
    throw alteredError('has a description that cannot be read', cause);
  }
}

/**
 * Turns errors of the archive and the compression into a BackupError of one sentence; returns other errors unchanged.
 */
function toBackupError(error: unknown, hasBackupHeader: boolean): unknown {
  const code = typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : '';
  const isArchiveError = error instanceof TarError || code.startsWith('Z_');
  if (!isArchiveError) return error;
  if (code === 'Z_BUF_ERROR' || (error instanceof TarError && error.kind === 'truncated')) return truncatedError(error);
  return hasBackupHeader
    ? alteredError('is damaged: what is in it does not fit together', error)
    : notABackupError(error);
}

function truncatedError(cause?: unknown): BackupError {
  return new BackupError('This backup is truncated: it ends before its end. Take it from where it is whole.', {
    cause,
  });
}

function alteredError(problemPhrase: string, cause?: unknown): BackupError {
  return new BackupError(
    `This backup ${problemPhrase}. It was altered or damaged: take another copy or another backup.`,
    {
      cause,
    },
  );
}

function notABackupError(cause?: unknown): BackupError {
  return new BackupError('This is no backup of Klatch ("klatch backup FILE" makes one).', { cause });
}
