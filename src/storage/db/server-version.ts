import type { Sql, Transaction } from './connection.ts';

/** PostgreSQL older than 11 cannot run Klatch's statements. */
export class DatabaseTooOldError extends Error {
  override readonly name = 'DatabaseTooOldError';
}

/** The configuration of PostgreSQL allows a crash to lose or damage everything in the database. */
export class DatabaseUnsafeError extends Error {
  override readonly name = 'DatabaseUnsafeError';
}

/** Rejects with DatabaseUnsafeError where PostgreSQL does not wait for the disk; no session can change that. */
export async function requireFsync(sql: Sql): Promise<void> {
  const [row] = await sql<{ fsync: string }[]>`select current_setting('fsync') as fsync`;
  if (row!.fsync !== 'off') return;
  throw new DatabaseUnsafeError(
    'PostgreSQL runs with fsync = off: a crash can lose every message that was confirmed. Set fsync = on in PostgreSQL, ' +
      'or services.postgresql.unsafe = true where that is acceptable, as for tests.',
  );
}

/** The version of PostgreSQL, such as "18.4". Rejects with DatabaseTooOldError. */
export async function readSupportedVersion(sql: Sql | Transaction): Promise<string> {
  const [row] = await sql<{ version: string; number: number }[]>`
    select current_setting('server_version') as version, current_setting('server_version_num')::int as number`;
  if (row!.number < 110_000) {
    throw new DatabaseTooOldError(`PostgreSQL ${row!.version} is too old: Klatch needs 11 or newer`);
  }
  return row!.version.split(' ')[0]!;
}
