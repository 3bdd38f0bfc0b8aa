import type { Sql } from './connection.ts';
import { DatabaseUnavailableError, FUNCTION_NOT_TO_BE_HAD_SQLSTATES, sqlState } from './database-error.ts';

/** One round trip; rejects with DatabaseUnavailableError where the server takes no writes (any more). */
export async function requireWritable(sql: Sql): Promise<void> {
  const [row] = await sql<
    { readOnly: boolean }[]
  >`select current_setting('transaction_read_only') = 'on' as "readOnly"`;
  if (row!.readOnly) throw new DatabaseUnavailableError('the database takes no writes any more');
}

/**
 * Writes a log record that nobody reads and waits for its commit, as for a post: on disk, and on synchronous standbys.
 * The record has no row, so nothing has to be cleaned up. Where PostgreSQL does not offer or permit such a record, the
 * function only checks that the server takes writes.
 */
export async function probeWrite(sql: Sql): Promise<void> {
  try {
    await sql`select pg_logical_emit_message(true, 'klatch', '')`;
  } catch (error) {
    if (!FUNCTION_NOT_TO_BE_HAD_SQLSTATES.has(sqlState(error) ?? '')) throw error;
    await requireWritable(sql);
  }
}
