import { Connection, type ConnectionTarget, type Sql, type Transaction } from './connection.ts';

/**
 * A pooler in front of the database is in transaction mode: it gives each transaction any free session of PostgreSQL.
 */
export class TransactionPoolingError extends Error {
  override readonly name = 'TransactionPoolingError';
}

/** The problem and its remedy, as texts for people. */
export const TRANSACTION_POOLING_SENTENCE =
  'A pooler in transaction mode stands before PostgreSQL: what Klatch listens to and sets in a session is gone with the ' +
  'next transaction';
export const TRANSACTION_POOLING_REMEDY =
  'Set pool_mode = session in pgbouncer, or lead services.postgresql to PostgreSQL itself.';

/**
 * Rejects with TransactionPoolingError if a pooler does not keep sessions. Without a pooler this takes one check: the
 * server process that answers is the one that PostgreSQL named when the session began.
 *
 * A pooler that does not keep sessions gives a single session the same process again and again. So a second session
 * holds that process in a transaction while the first session reads its own pid. Depending on the pooler's order, the
 * process that becomes free is the next or the last to be used. In both cases the first session then has another
 * process than before.
 */
export async function requireSessionPooling(target: ConnectionTarget, timeoutMs: number): Promise<void> {
  // A session with a standby suffices for the check, since the standby is behind the same pooler.
  const open = (): Connection => new Connection(target, 'start', { acceptsReadOnly: true });
  const [asking, holding] = [open(), open()];
  try {
    await asking.run(async (sql) => {
      if (!(await isPooled(sql))) return;
      const pids = await holding.run((holdingSql) => readPidsWhileHeld(sql, holdingSql), timeoutMs);
      if (new Set(pids).size > 1) {
        throw new TransactionPoolingError(`${TRANSACTION_POOLING_SENTENCE}. ${TRANSACTION_POOLING_REMEDY}`);
      }
    }, timeoutMs);
  } finally {
    asking.close();
    holding.close();
  }
}

async function isPooled(sql: Sql): Promise<boolean> {
  const rows = await sql.unsafe<{ pid: number }[]>(PID);
  return rows[0]!.pid !== rows.state.pid;
}

/**
 * Returns the pids of the server processes that answer one session, while and after another session holds a process.
 */
async function readPidsWhileHeld(sql: Sql, holdingSql: Sql): Promise<number[]> {
  const pids: number[] = [];
  for (let turn = 0; turn < 2; turn += 1) {
    await holdingSql.begin(async (tx) => {
      await pidOf(tx);
      pids.push(await pidOf(sql));
    });
    pids.push(await pidOf(sql));
    // Makes an additional query: if the pooler alternates between two processes, each session would otherwise always
    // get the same one.
    await pidOf(holdingSql);
  }
  return pids;
}

async function pidOf(sql: Sql | Transaction): Promise<number> {
  const [row] = await sql.unsafe<{ pid: number }[]>(PID);
  return row!.pid;
}

const PID = 'select pg_backend_pid() as pid';
