import type { Sql } from './connection.ts';
import { DatabaseUnavailableError, FUNCTION_UNAVAILABLE_SQLSTATES, sqlState } from './database-error.ts';

/**
 * Checks in one round trip that the server takes writes; rejects with DatabaseUnavailableError if it does not (any
 * more).
 */
export async function requireWritable(sql: Sql): Promise<void> {
  const [row] = await sql<
    { readOnly: boolean }[]
  >`select current_setting('transaction_read_only') = 'on' as "readOnly"`;
  if (row!.readOnly) throw new DatabaseUnavailableError('the database takes no writes any more');
}

/**
 * Writes a record into the write-ahead log that nobody reads, and waits for its commit, as for a post: on disk, and on
 * synchronous standbys. The record belongs to no row, so nothing has to be cleaned up. If PostgreSQL does not offer or
 * permit such a record, the function only checks that the server takes writes.
 */
export async function probeWrite(sql: Sql): Promise<void> {
  try {
    await sql`select pg_logical_emit_message(true, 'klatch', '')`;
  } catch (error) {
    if (!FUNCTION_UNAVAILABLE_SQLSTATES.has(sqlState(error) ?? '')) throw error;
    await requireWritable(sql);
  }
}
