import { Connection, type ConnectionTarget, type Sql, type Transaction } from './connection.ts';

/**
 * Runs `work` on a connection of its own, in a read-only transaction, and closes the connection. Rejects with
 * DatabaseUnavailableError, CommitUnknownError, or the rejection of `work`.
 */
export async function withReadOnlyTransaction<T>(
  target: ConnectionTarget,
  timeoutMs: number,
  work: (tx: Transaction) => Promise<T>,
): Promise<T> {
  const connection = new Connection(target, 'doctor', { acceptsReadOnly: true });
  try {
    return await connection.run(async (sql: Sql) => (await sql.begin('read only', work)) as T, timeoutMs);
  } finally {
    connection.close();
  }
}
