import type { Sql } from '../db/connection.ts';

/** Work that one node at a time does for all nodes. */
type Job = 'retention' | 'files';

/**
 * Takes the lock of a job for `forMs` unless a node has it, this one included; false: a node has it. A lock that would
 * last longer than `forMs` was written before the database's clock was set back, and counts as free.
 */
export async function takeFreeJobLock(sql: Sql, job: Job, holder: string, forMs: number): Promise<boolean> {
  const rows = await sql`
    update job_lock set holder = ${holder}, expires_at = clock_timestamp() + ${forMs} * interval '1 millisecond'
    where name = ${job} and (expires_at <= clock_timestamp()
      or expires_at > clock_timestamp() + ${forMs} * interval '1 millisecond') returning 1`;
  return rows.length > 0;
}

/** Extends the lock of a job; false: this node no longer holds it, and another node may have taken it. */
export async function renewJobLock(sql: Sql, job: Job, holder: string, forMs: number): Promise<boolean> {
  const rows = await sql`
    update job_lock set expires_at = clock_timestamp() + ${forMs} * interval '1 millisecond'
    where name = ${job} and holder = ${holder} and expires_at > clock_timestamp() returning 1`;
  return rows.length > 0;
}
