import { Connection, type ConnectionTarget, type Sql, type Transaction } from './connection.ts';

/** What leads to the database gives each transaction whichever session of PostgreSQL is free. */
export class TransactionPoolingError extends Error {
  override readonly name = 'TransactionPoolingError';
}

/** For people: what is wrong, and what to do. */
export const TRANSACTION_POOLING =
  'A pooler in transaction mode stands before PostgreSQL: what Klatch listens to and sets in a session is gone with the ' +
  'next transaction';
export const TRANSACTION_POOLING_REMEDY =
  'Set pool_mode = session in pgbouncer, or lead services.postgresql to PostgreSQL itself.';

/**
 * Rejects with TransactionPoolingError where a pooler keeps no session together. Without a pooler this is one look: the
 * process that PostgreSQL named when the session began is the one that answers.
 *
 * A session that is alone gets the same process again and again from such a pooler. So a second one holds a process in a
 * transaction while the first one asks for its own. What it gives back is the next to be given out, or the last one,
 * whichever way the pooler takes turns; then the first one has another process than before.
 */
export async function requireSessionPooling(target: ConnectionTarget, timeoutMs: number): Promise<void> {
  // A standby is reached by the same way.
  const open = (): Connection => new Connection(target, 'start', { acceptsReadOnly: true });
  const [asking, holding] = [open(), open()];
  try {
    await asking.run(async (sql) => {
      if (!(await isPooled(sql))) return;
      const pids = await holding.run((other) => readPidsWhileHeld(sql, other), timeoutMs);
      if (new Set(pids).size > 1) {
        throw new TransactionPoolingError(`${TRANSACTION_POOLING}. ${TRANSACTION_POOLING_REMEDY}`);
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

/** The processes that answer one session, while and after another one holds a process. */
async function readPidsWhileHeld(sql: Sql, other: Sql): Promise<number[]> {
  const pids: number[] = [];
  for (let turn = 0; turn < 2; turn += 1) {
    await other.begin(async (tx) => {
      await pidOf(tx);
      pids.push(await pidOf(sql));
    });
    pids.push(await pidOf(sql));
    // Of two processes that are given out in turn each session would get its own again and again.
    await pidOf(other);
  }
  return pids;
}

async function pidOf(sql: Sql | Transaction): Promise<number> {
  const [row] = await sql.unsafe<{ pid: number }[]>(PID);
  return row!.pid;
}

const PID = 'select pg_backend_pid() as pid';
