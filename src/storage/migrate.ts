import { listAssets, readAsset } from '../assets.ts';
import type { Sql, Transaction } from './connection.ts';
import type { Pool } from './pool.ts';

/** The database was made by a newer Klatch. This one must not touch it. */
export class SchemaTooNewError extends Error {
  override readonly name = 'SchemaTooNewError';
}

/** One step of the schema. */
export interface Migration {
  readonly version: number;
  readonly name: string;
  readonly text: string;
}

/** 'klatc' in ASCII: one number for everybody who migrates a database. */
export const ADVISORY_LOCK = 0x6b6c617463;
/** Building an index on a large table takes its time; a node that waits for another one's migration as well. */
const TIMEOUT_MS = 30 * 60_000;

/** The migrations this program carries, in order. */
export function readMigrations(): Migration[] {
  const files = listAssets('storage/migrations').filter((file) => file.endsWith('.sql'));
  return orderMigrations(files).map(({ file, ...step }) => ({
    ...step,
    text: readAsset(`storage/migrations/${file}`),
  }));
}

/** Puts files named `<number>-<name>.sql` in the order of their numbers; throws unless these are 1, 2, 3 … */
export function orderMigrations(files: readonly string[]): { version: number; name: string; file: string }[] {
  const steps = files.map((file) => {
    const [, number, name] = /^(\d+)-(.+)\.sql$/.exec(file) ?? [];
    if (number === undefined || name === undefined)
      throw new Error(`migration ${file} is not named <number>-<name>.sql`);
    return { version: Number(number), name, file };
  });
  steps.sort((a, b) => a.version - b.version);
  steps.forEach((step, index) => {
    if (step.version > index + 1) throw new Error(`migration ${index + 1} is missing`);
    if (step.version < index + 1) throw new Error(`${step.file}: there is another migration ${step.version}`);
  });
  return steps;
}

/** The version a database is at; 0 for an empty one. */
export async function schemaVersion(sql: Sql | Transaction): Promise<number> {
  const [table] = await sql`select to_regclass('schema_version') is not null as present`;
  if (table?.['present'] !== true) return 0;
  const [row] = await sql`select coalesce(max(version), 0) as version from schema_version`;
  return Number(row?.['version']);
}

/** The version this program works with. */
export function newestVersion(): number {
  return readMigrations().length;
}

/** Rejects with SchemaTooNewError when somebody has brought the database beyond `newest` since. */
export async function checkSchema(sql: Sql, newest: number): Promise<void> {
  const version = await schemaVersion(sql);
  if (version > newest) throw new SchemaTooNewError(tooNew(version, newest));
}

function tooNew(version: number, newest: number): string {
  return (
    `the database is at schema ${version} and this Klatch knows ${newest}: ` +
    'start the newer Klatch again, or restore a backup made before the upgrade'
  );
}

/**
 * Brings a database to this program's schema: forward only, one transaction for each migration. Of several nodes that
 * start at once one migrates, while the others wait for its lock. Returns the names of what was applied here. Rejects
 * with SchemaTooNewError when the database is ahead of this program.
 */
export async function migrate(pool: Pool, migrations = readMigrations()): Promise<string[]> {
  const applied: string[] = [];
  for (;;) {
    const step = await pool.transaction((tx) => applyNext(tx, migrations), TIMEOUT_MS);
    if (step === null) return applied;
    applied.push(step);
  }
}

async function applyNext(tx: Transaction, migrations: readonly Migration[]): Promise<string | null> {
  await tx`set local lock_timeout = 0`;
  await tx`set local idle_in_transaction_session_timeout = 0`;
  await tx`select pg_advisory_xact_lock(${ADVISORY_LOCK})`;
  // Beneath the lock, because `if not exists` alone lets two sessions collide in the catalogue.
  await tx`create table if not exists schema_version (
    version integer primary key, name text not null, applied_at timestamptz not null default now())`;
  const version = await schemaVersion(tx);
  if (version > migrations.length) {
    throw new SchemaTooNewError(tooNew(version, migrations.length));
  }
  const next = migrations[version];
  if (next === undefined) return null;
  // The version row first: should another node not know the lock, it stops here instead of building the schema twice.
  await tx`insert into schema_version (version, name) values (${next.version}, ${next.name})`;
  await tx.unsafe(next.text);
  return `${next.version} ${next.name}`;
}
