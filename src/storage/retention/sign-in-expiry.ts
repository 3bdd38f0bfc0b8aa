import type { Sql } from '../db/connection.ts';
import type { Pool } from '../db/pool.ts';
import { DELETE_PAGE_ROWS, deleteInPages } from './retention.ts';

/** The numbers of expired rows that one round removed. */
export interface RemovedSignInCounts {
  readonly activations: number;
  readonly links: number;
  readonly sessions: number;
}

/**
 * Removes expired activations, links and sessions, by the database's clock. Activations stay for 25 hours after they
 * began, because they are used to count codes. Before each statement the job calls `beforeStep` and waits for it; its
 * rejection aborts the round.
 */
export async function removeExpiredSignIns(pool: Pool, beforeStep: () => Promise<void>): Promise<RemovedSignInCounts> {
  const inPages = (deletePage: (sql: Sql) => Promise<number>): Promise<number> =>
    deleteInPages(pool, deletePage, beforeStep);
  return {
    activations: await inPages(deleteOldExpiredActivations),
    links: await inPages(deleteExpiredLinks),
    sessions: await inPages(deleteExpiredSessions),
  };
}

async function deleteOldExpiredActivations(sql: Sql): Promise<number> {
  const { count } = await sql`
    delete from activation where transaction_hash in (
      select transaction_hash from activation
      where sent_at < now() - interval '25 hours' and expires_at < now() limit ${DELETE_PAGE_ROWS})`;
  return count;
}

async function deleteExpiredLinks(sql: Sql): Promise<number> {
  const { count } = await sql`
    delete from sign_in_link where token_hash in (
      select token_hash from sign_in_link where expires_at < now() limit ${DELETE_PAGE_ROWS})`;
  return count;
}

async function deleteExpiredSessions(sql: Sql): Promise<number> {
  const { count } = await sql`
    delete from session where id in (
      select id from session where expires_at < now() limit ${DELETE_PAGE_ROWS})`;
  return count;
}
