import * as z from 'zod';

/** This number rises when an older Klatch could not read the files of a newer one. */
export const BACKUP_FORMAT_VERSION = 1;
/** The first file of a backup: it holds the backup's properties, which a reader needs before the rows. */
export const HEADER_FILE_NAME = 'klatch-backup.json';
/** The last file of a backup: it lists all others, so a backup without it is incomplete. */
export const MANIFEST_FILE_NAME = 'manifest.json';
/**
 * A file with rows of a table has about this many bytes before compression. Only one such file is in memory at a time.
 */
export const PART_BYTES = 4 * 1024 * 1024;
/**
 * The maximum size of the header, the manifest, or a file of the configuration. A file of rows takes 150 bytes of the
 * manifest, so 1.7 TB of rows fit.
 */
export const MAX_WHOLE_ENTRY_BYTES = 64 * 1024 * 1024;

/** A name in a backup that goes into SQL statements: only these characters are allowed. */
const identifier = z.string().regex(/^[a-z][a-z0-9_]{0,62}$/);
const count = z.int().min(0);

const tableSchema = z.object({
  name: identifier,
  columns: z.array(identifier).min(1),
});

/** The position of an identity column's sequence: PostgreSQL's `last_value` and `is_called`. */
const sequenceSchema = z.object({ table: identifier, column: identifier, last: count, called: z.boolean() });

const configurationSchema = z.object({
  /**
   * True: the files are copies of the original ones. False: they contain the effective settings, with placeholders for
   * secrets.
   */
  secrets: z.boolean(),
  /** The name in the archive and the original path of each file. The first file is server.conf. */
  files: z.array(
    z.object({ name: z.string(), path: z.string(), kind: z.enum(['configuration', 'public-key', 'private-key']) }),
  ),
  /** What the backup does not contain: keys of the configuration and paths of files. */
  missing: z.array(z.string()),
});

export const headerSchema = z.object({
  format: z.int().min(1),
  klatch: z.string(),
  schema: z.int().min(1),
  /** Names of the migrations of the schema, in order. */
  migrations: z.array(z.string()),
  postgresql: z.string(),
  taken_at: z.iso.datetime(),
  /**
   * A text that is sealed with the server's `secret`, to tell whether a secret belongs to this backup. Null: nothing
   * was sealed yet.
   */
  secret_canary: z.string().nullable(),
  tables: z.array(tableSchema),
  /** The days for which the delivery log has a partition, as YYYYMMDD. */
  days: z.array(z.string().regex(/^\d{8}$/)),
  sequences: z.array(sequenceSchema),
  left_out: z.array(z.object({ table: z.string(), reason: z.string() })),
  configuration: configurationSchema,
});

const partSchema = z.object({ name: z.string(), bytes: count, sha256: z.string(), rows: count.optional() });

export const manifestSchema = z.object({
  /** All other files of the backup in their order. */
  parts: z.array(partSchema),
  rows: z.record(identifier, count),
});

export type BackupHeader = z.infer<typeof headerSchema>;
export type BackupTable = z.infer<typeof tableSchema>;
export type BackupManifest = z.infer<typeof manifestSchema>;
export type ManifestPart = z.infer<typeof partSchema>;
export type BackupConfiguration = z.infer<typeof configurationSchema>;

/** The name of a table's file in a backup; `index` begins at 1. */
export function partName(table: string, index: number): string {
  return `tables/${table}/${String(index).padStart(6, '0')}.copy`;
}

/** The table whose rows the file of this name holds; null: it holds no rows. */
export function tableOfPart(name: string): string | null {
  return /^tables\/([a-z0-9_]+)\/\d+\.copy$/.exec(name)?.[1] ?? null;
}

/** The reason why a backup or database cannot be written, read or loaded; a sentence for an administrator. */
export class BackupError extends Error {
  override readonly name = 'BackupError';
}
