import type { Sql } from '../db/connection.ts';

/** Work that one node at a time does for all of them. */
type Job = 'retention' | 'files';

/**
 * Takes the lock of a job for `forMs` unless some node has it, this one included; false: some node has. Nobody has it for
 * longer than that: such a row was written before the database's clock was set back.
 */
export async function takeFreeJobLock(sql: Sql, job: Job, holder: string, forMs: number): Promise<boolean> {
  const rows = await sql`
    update job_lock set holder = ${holder}, expires_at = clock_timestamp() + ${forMs} * interval '1 millisecond'
    where name = ${job} and (expires_at <= clock_timestamp()
      or expires_at > clock_timestamp() + ${forMs} * interval '1 millisecond') returning 1`;
  return rows.length > 0;
}

/** Prolongs the lock of a job; false: it ran out, and another node may have taken it. */
export async function renewJobLock(sql: Sql, job: Job, holder: string, forMs: number): Promise<boolean> {
  const rows = await sql`
    update job_lock set expires_at = clock_timestamp() + ${forMs} * interval '1 millisecond'
    where name = ${job} and holder = ${holder} and expires_at > clock_timestamp() returning 1`;
  return rows.length > 0;
}
