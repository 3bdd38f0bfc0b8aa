import type { Sql, Transaction } from './connection.ts';
import { listMigrations, type MigrationId } from './migration-files.ts';

/** The reason why a program cannot use a schema: `problemPhrase` and `remedy` are two parts of one sentence. */
export interface SchemaMismatch {
  readonly kind: 'newer' | 'development-build' | 'other';
  readonly problemPhrase: string;
  readonly remedy: string;
}

/** The migrations of a database are not a prefix of this program's. The program must not change that database. */
export class IncompatibleSchemaError extends Error {
  override readonly name = 'IncompatibleSchemaError';

  constructor({ problemPhrase: found, remedy }: SchemaMismatch) {
    super(`${found}: ${remedy}`);
  }
}

/** The name of migration 1 before version 0.1.0, when the schema was not stable yet. */
const DEVELOPMENT_BUILD_MIGRATION = 'initial';

/** The applied migrations of a database, in order; none for an empty one. */
export async function readAppliedMigrations(sql: Sql | Transaction): Promise<MigrationId[]> {
  const [table] = await sql`select to_regclass('schema_version') is not null as present`;
  if (table?.['present'] !== true) return [];
  return [...(await sql<MigrationId[]>`select version, name from schema_version order by version`)];
}

/**
 * The reason why a program with the migrations `known` cannot use a database with the migrations `applied`; null: it
 * can.
 */
export function findSchemaMismatch(
  applied: readonly MigrationId[],
  known: readonly MigrationId[],
): SchemaMismatch | null {
  const index = applied.findIndex(({ version, name }, i) => version !== i + 1 || known[i]?.name !== name);
  const firstDifferent = applied[index];
  if (firstDifferent === undefined) return null;
  if (firstDifferent.version > known.length) {
    return {
      kind: 'newer',
      problemPhrase: `the database is at schema ${applied.at(-1)!.version} and this Klatch knows ${known.length}`,
      remedy: 'start the newer Klatch again, or restore a backup made before the upgrade',
    };
  }
  if (firstDifferent.version === 1 && firstDifferent.name === DEVELOPMENT_BUILD_MIGRATION) {
    return {
      kind: 'development-build',
      problemPhrase:
        `the database has the migration 1 ${firstDifferent.name}, so a development build of Klatch before 0.1.0 made it, ` +
        'and this Klatch cannot read it',
      remedy:
        'start with an empty database (drop this one and create it again; for the embedded PostgreSQL, stop Klatch ' +
        'and move the folder "postgresql" out of data-dir)',
    };
  }
  return {
    kind: 'other',
    problemPhrase:
      `the database has the migration ${firstDifferent.version} ${firstDifferent.name} where this Klatch has ` +
      `${index + 1} ${known[index]!.name}, so another program made it`,
    remedy: 'name another database in server.conf, or use the program that made this one',
  };
}

/**
 * Returns the schema version of a database, 0 for an empty one. Rejects with IncompatibleSchemaError when its
 * migrations are not a prefix of `known`.
 */
export async function checkSchemaReturningVersion(
  sql: Sql | Transaction,
  known: readonly MigrationId[] = listMigrations(),
): Promise<number> {
  const applied = await readAppliedMigrations(sql);
  const mismatch = findSchemaMismatch(applied, known);
  if (mismatch !== null) throw new IncompatibleSchemaError(mismatch);
  return applied.length;
}
