import * as z from 'zod';

/** This number rises when an older Klatch could not read the files of a newer one. */
export const BACKUP_FORMAT_VERSION = 1;
/** The first file of a backup: its properties, readable before its rows. */
export const HEADER_FILE_NAME = 'klatch-backup.json';
/** The last file: it lists the others, so a backup without it is incomplete. */
export const MANIFEST_FILE_NAME = 'manifest.json';
/** A file of rows holds about this many bytes before compression: one such file is in memory at a time. */
export const PART_BYTES = 4 * 1024 * 1024;
/**
 * The bound for the header, the manifest, or a file of the configuration. A part takes 150 bytes of the manifest, so
 * 1.7 TB of rows fit.
 */
export const MAX_WHOLE_ENTRY_BYTES = 64 * 1024 * 1024;

/** Names from a file that go into statements: only these characters are allowed. */
const identifier = z.string().regex(/^[a-z][a-z0-9_]{0,62}$/);
const count = z.int().min(0);

const tableSchema = z.object({
  name: identifier,
  columns: z.array(identifier).min(1),
});

/** The position of an identity column's sequence. */
const sequenceSchema = z.object({ table: identifier, column: identifier, last: count, called: z.boolean() });

const configurationSchema = z.object({
  /** True: the files are copies; false: the effective settings, with placeholders for secrets. */
  secrets: z.boolean(),
  /** The name in the archive and the original path of each file. The first file is server.conf. */
  files: z.array(
    z.object({ name: z.string(), path: z.string(), kind: z.enum(['configuration', 'public-key', 'private-key']) }),
  ),
  /** Missing parts: keys of the configuration and paths of files. */
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
  /** Tells whether a secret belongs to this backup; null: nothing was sealed yet. */
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
  /** All other files in their order. */
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

/** The table of a file with this name, else null. */
export function tableOfPart(name: string): string | null {
  return /^tables\/([a-z0-9_]+)\/\d+\.copy$/.exec(name)?.[1] ?? null;
}

/** The reason why a backup or database cannot be written, read or loaded; a sentence for an administrator. */
export class BackupError extends Error {
  override readonly name = 'BackupError';
}
