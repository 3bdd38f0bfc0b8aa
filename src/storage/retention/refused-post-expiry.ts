import type { Sql } from '../db/connection.ts';
import type { Pool } from '../db/pool.ts';
import { DELETE_PAGE_ROWS, deleteInPages } from './retention.ts';

/** Refused posts are kept for this long after the newest one with the same reason. */
export const REFUSED_POST_RETENTION_DAYS = 7;

/**
 * Removes old refused posts, by the database's clock. Before each statement the job calls `beforeStep` and waits for
 * it.
 */
export function removeExpiredRefusedPosts(pool: Pool, beforeStep: () => Promise<void>): Promise<number> {
  return deleteInPages(pool, deletePageOfOldRows, beforeStep);
}

/** Deletes a page of old rows. It skips rows that a node is updating, since these are no longer old. */
async function deletePageOfOldRows(sql: Sql): Promise<number> {
  const { count } = await sql`
    delete from refused_post where ctid = any(array(
      select ctid from refused_post where last_at < now() - ${REFUSED_POST_RETENTION_DAYS} * interval '1 day'
      order by last_at limit ${DELETE_PAGE_ROWS} for update skip locked))`;
  return count;
}
