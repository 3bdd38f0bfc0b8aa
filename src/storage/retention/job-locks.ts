import type { Sql } from '../db/connection.ts';

/** Work that one node at a time does for all of them. */
type Job = 'retention' | 'files';

/**
 * Takes a duty for so long unless somebody has it, this node included; false: somebody has. Nobody has it for longer
 * than that: such a row was written before the database's clock was set back.
 */
export async function takeJobLock(sql: Sql, duty: Job, holder: string, forMs: number): Promise<boolean> {
  const rows = await sql`
    update duty set holder = ${holder}, expires_at = clock_timestamp() + ${forMs} * interval '1 millisecond'
    where name = ${duty} and (expires_at <= clock_timestamp()
      or expires_at > clock_timestamp() + ${forMs} * interval '1 millisecond') returning 1`;
  return rows.length > 0;
}

/** Prolongs a duty; false: it ran out, and another node may have taken it. */
export async function renewJobLock(sql: Sql, duty: Job, holder: string, forMs: number): Promise<boolean> {
  const rows = await sql`
    update duty set expires_at = clock_timestamp() + ${forMs} * interval '1 millisecond'
    where name = ${duty} and holder = ${holder} and expires_at > clock_timestamp() returning 1`;
  return rows.length > 0;
}
