import type { ConversationId } from '../../model/ids.ts';
import type { Sql } from '../db/connection.ts';
import type { Pool } from '../db/pool.ts';
import { DELETE_PAGE_ROWS, deleteInPages } from './retention.ts';

/** The days for which the row of an alert is kept after its last update, by the state of the alert. */
export const ALERT_RETENTION_DAYS = { resolved: 7, firing: 30 } as const;
export const MAX_ALERTS_PER_CONVERSATION = 10_000;
/**
 * One statement counts the alerts of at most this many conversations: it reads the index entries of all their alerts.
 */
const CONVERSATIONS_PER_QUERY = 500;
const SLOW_QUERY_TIMEOUT_MS = 60_000;

interface AlertExpiry {
  /** If a conversation has more alerts than this, the job deletes the oldest. */
  readonly maxAlerts: number;
  /** Called before each statement, which waits for its promise; a rejection aborts the round. */
  readonly beforeStep: () => Promise<void>;
}

/**
 * Removes rows of alerts, by the database's clock:
 * - alerts that were not updated for the days that `ALERT_RETENTION_DAYS` has for their state,
 * - the oldest alerts of conversations that have more than `maxAlerts`.
 *
 * The messages that show the alerts stay; a later report is posted as a new message. The job skips rows that a flush
 * has locked: waiting for them could cause a deadlock.
 */
export async function removeExpiredAlerts(pool: Pool, { maxAlerts, beforeStep }: AlertExpiry): Promise<number> {
  let totalDeleted = 0;
  for (const [state, days] of Object.entries(ALERT_RETENTION_DAYS))
    totalDeleted += await deleteInPages(pool, (sql) => deletePageOfOldAlerts(sql, state, days), beforeStep);
  for (let after = 0 as ConversationId; ;) {
    await beforeStep();
    const page = await pool.run((sql) => countAlertsPerConversation(sql, after), SLOW_QUERY_TIMEOUT_MS);
    for (const { conversationId, count } of page)
      totalDeleted += await deleteOldestAlertsInPages(pool, { conversationId, count: count - maxAlerts }, beforeStep);
    if (page.length < CONVERSATIONS_PER_QUERY) return totalDeleted;
    after = page.at(-1)!.conversationId;
  }
}

async function deleteOldestAlertsInPages(
  pool: Pool,
  { conversationId, count: excessCount }: { conversationId: ConversationId; count: number },
  beforeStep: () => Promise<void>,
): Promise<number> {
  let totalDeleted = 0;
  while (totalDeleted < excessCount) {
    await beforeStep();
    const limit = Math.min(excessCount - totalDeleted, DELETE_PAGE_ROWS);
    const deleted = await pool.run((sql) => deleteOldestAlerts(sql, conversationId, limit), SLOW_QUERY_TIMEOUT_MS);
    if (deleted === 0) break;
    totalDeleted += deleted;
  }
  return totalDeleted;
}

async function deletePageOfOldAlerts(sql: Sql, state: string, days: number): Promise<number> {
  const { count } = await sql`
    delete from alert where ctid = any(array(
      select ctid from alert where state = ${state} and updated_at < now() - ${days} * interval '1 day'
      order by updated_at limit ${DELETE_PAGE_ROWS} for update skip locked))`;
  return count;
}

/**
 * The next conversations after `after` that have alerts, with the numbers of their alerts. The query goes from one
 * conversation to the next by the index and does not scan the table.
 */
async function countAlertsPerConversation(
  sql: Sql,
  after: ConversationId,
): Promise<{ conversationId: ConversationId; count: number }[]> {
  return sql`
    with recursive conversations (id) as (
      (select a.conversation_id from alert a where a.conversation_id > ${after} order by a.conversation_id limit 1)
      union all
      select (select a.conversation_id from alert a where a.conversation_id > c.id order by a.conversation_id limit 1)
      from conversations c where c.id is not null
    )
    select c.id as "conversationId", (select count(*) from alert a where a.conversation_id = c.id) as count
    from conversations c where c.id is not null limit ${CONVERSATIONS_PER_QUERY}`;
}

/**
 * Deletes those of the `limit` oldest alerts that are not locked: it does not delete a newer one in place of a locked
 * one.
 */
async function deleteOldestAlerts(sql: Sql, conversationId: ConversationId, limit: number): Promise<number> {
  const { count } = await sql`
    delete from alert where ctid = any(array(
      select ctid from alert where ctid = any(array(
        select ctid from alert where conversation_id = ${conversationId} order by updated_at limit ${limit}))
      for update skip locked))`;
  return count;
}
