import * as z from 'zod';

/** Raised when an older Klatch could not read what a newer one writes. */
export const BACKUP_FORMAT_VERSION = 1;
/** The first file of a backup: what it is, known before its rows are. */
export const HEADER_FILE_NAME = 'klatch-backup.json';
/** The last one: what the others are, so that a backup without it is not whole. */
export const MANIFEST_FILE_NAME = 'manifest.json';
/** A file of rows holds about this many bytes before compression: as much as is in memory at a time. */
export const PART_BYTES = 4 * 1024 * 1024;
/** Of the header, the manifest, or a file of the configuration: a part takes 150 bytes of the manifest, so 1.7 TB of rows. */
export const MAX_WHOLE_ENTRY_BYTES = 64 * 1024 * 1024;

/** Names that come from a file and go into statements: nothing but these characters. */
const identifier = z.string().regex(/^[a-z][a-z0-9_]{0,62}$/);
const count = z.int().min(0);

const tableSchema = z.object({
  name: identifier,
  columns: z.array(identifier).min(1),
});

/** The position of the numbers that a table gives out by itself. */
const sequenceSchema = z.object({ table: identifier, column: identifier, last: count, called: z.boolean() });

const configurationSchema = z.object({
  /** True: the files are copies; false: the settings in force, with placeholders for what is secret. */
  secrets: z.boolean(),
  /** In the archive, and where each stood. The first is server.conf. */
  files: z.array(
    z.object({ name: z.string(), path: z.string(), kind: z.enum(['configuration', 'public-key', 'private-key']) }),
  ),
  /** What has to be supplied from elsewhere: keys of the configuration and paths of files. */
  missing: z.array(z.string()),
});

export const headerSchema = z.object({
  format: z.int().min(1),
  klatch: z.string(),
  schema: z.int().min(1),
  /** Names of the migrations that made the schema, in order. */
  migrations: z.array(z.string()),
  postgresql: z.string(),
  taken_at: z.iso.datetime(),
  /** Tells whether a secret is the one of this backup; null: nothing was sealed yet. */
  secret_canary: z.string().nullable(),
  tables: z.array(tableSchema),
  /** Days of the delivery log that have a partition of their own, as YYYYMMDD. */
  days: z.array(z.string().regex(/^\d{8}$/)),
  sequences: z.array(sequenceSchema),
  left_out: z.array(z.object({ table: z.string(), reason: z.string() })),
  configuration: configurationSchema,
});

const partSchema = z.object({ name: z.string(), bytes: count, sha256: z.string(), rows: count.optional() });

export const manifestSchema = z.object({
  /** Every other file in its order. */
  parts: z.array(partSchema),
  rows: z.record(identifier, count),
});

export type BackupHeader = z.infer<typeof headerSchema>;
export type BackupTable = z.infer<typeof tableSchema>;
export type BackupManifest = z.infer<typeof manifestSchema>;
export type ManifestPart = z.infer<typeof partSchema>;
export type BackupConfiguration = z.infer<typeof configurationSchema>;

/** The name of a table's n-th file, from 1. */
export function partName(table: string, index: number): string {
  return `tables/${table}/${String(index).padStart(6, '0')}.copy`;
}

/** The table whose rows a file of this name holds, else null. */
export function tableOfPart(name: string): string | null {
  return /^tables\/([a-z0-9_]+)\/\d+\.copy$/.exec(name)?.[1] ?? null;
}

/** Something about a backup or a database that keeps it from being made, read or loaded; a sentence for a person. */
export class BackupError extends Error {
  override readonly name = 'BackupError';
}
