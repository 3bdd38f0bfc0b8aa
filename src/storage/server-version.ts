import type { Sql, Transaction } from './connection.ts';

/** PostgreSQL older than 11 cannot run the statements. */
export class DatabaseTooOldError extends Error {
  override readonly name = 'DatabaseTooOldError';
}

/** The version of PostgreSQL, such as "18.4". Rejects with DatabaseTooOldError. */
export async function readServerVersion(sql: Sql | Transaction): Promise<string> {
  const [row] = await sql<{ version: string; number: number }[]>`
    select current_setting('server_version') as version, current_setting('server_version_num')::int as number`;
  if (row!.number < 110_000) {
    throw new DatabaseTooOldError(`PostgreSQL ${row!.version} is too old: Klatch needs 11 or newer`);
  }
  return row!.version.split(' ')[0]!;
}
