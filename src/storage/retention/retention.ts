import type { RetentionConfig } from '../../config/config.ts';
import type { Sql, Transaction } from '../db/connection.ts';
import type { Pool } from '../db/pool.ts';
import { deleteOldHookStats } from '../hooks/hook-stats.ts';
import { deleteOldPushLog } from '../push/push-devices.ts';
import { trimAttemptsPerHook } from './attempt-trimming.ts';

const DAY_MS = 86_400_000;
const MIN_HOOK_STATS_RETENTION_MS = 7 * DAY_MS;
/** Partitions are created this far ahead, so that a day's first delivery never waits for one. */
const PARTITION_DAYS_AHEAD = 3;
/** One statement deletes at most this many rows. */
export const DELETE_PAGE_ROWS = 5_000;
/**
 * A round deletes at most this many pages of each kind of row. They suffice for the rows of a quarter of an hour at
 * 4,000 a second, twice as many as may arrive.
 */
export const MAX_DELETE_PAGES = 720;
/**
 * The time-out of the statement of a page. The last page of a kind finds too few rows, and may scan a table for that.
 */
const SLOW_QUERY_TIMEOUT_MS = 60_000;
/**
 * The key of an advisory lock: 'retai' in ASCII. With it, one session at a time, of any node, creates and drops
 * partitions.
 */
const PARTITION_LOCK_KEY = 0x7265746169;

/** Creates the delivery log's partitions for today and the next days. Several nodes may do so at once. */
export async function ensureAttemptPartitions(tx: Transaction, nowMs: number): Promise<void> {
  await tx`select pg_advisory_xact_lock(${PARTITION_LOCK_KEY})`;
  const today = Math.floor(nowMs / DAY_MS) * DAY_MS;
  for (let day = 0; day <= PARTITION_DAYS_AHEAD; day += 1) await ensureDayPartition(tx, new Date(today + day * DAY_MS));
}

/** Creates the partition of one day, which begins at `dayStart`, if it is missing. */
export async function ensureDayPartition(tx: Transaction, dayStart: Date): Promise<void> {
  const dayEnd = new Date(dayStart.getTime() + DAY_MS);
  const name = partitionName(dayStart);
  const [found] = await tx`select to_regclass(${name}) is not null as present`;
  if (found?.['present'] === true) return;
  // A wrong clock may have put rows of that day into the default partition, which would prevent the new partition.
  // These rows move to the new partition. The lock, which attaching takes anyway, keeps further rows out meanwhile;
  // deliveries of other days do not use the default partition.
  await tx`lock table delivery_attempt_default in access exclusive mode`;
  await tx.unsafe(`create table ${name} (like delivery_attempt including all)`);
  await tx`
    with moved as (delete from delivery_attempt_default where at >= ${dayStart} and at < ${dayEnd} returning *)
    insert into ${tx(name)} select * from moved`;
  await tx.unsafe(
    `alter table delivery_attempt attach partition ${name} for values from ('${dayStart.toISOString()}') to ('${dayEnd.toISOString()}')`,
  );
}

/** The numbers of rows that one round removed; `days` counts partitions. */
export interface RemovedCounts {
  readonly days: number;
  readonly attempts: number;
  readonly keys: number;
  readonly hooks: number;
  readonly pushes: number;
  readonly stats: number;
}

interface RetentionRound {
  readonly nowMs: number;
  /** Called before each statement that deletes, which waits for its promise; a rejection aborts the round. */
  readonly beforeStep?: () => Promise<void>;
}

/**
 * Deletes expired data: whole days of the delivery log, rows beyond the limit of a hook, idempotency keys, removed
 * hooks, push log, counts of requests. A failed step does not stop the later ones; at the end the job throws the first
 * failure.
 */
export async function removeExpiredData(
  pool: Pool,
  retention: RetentionConfig,
  round: RetentionRound,
): Promise<RemovedCounts> {
  const { nowMs, beforeStep = () => Promise.resolve() } = round;
  const steps = new StepRunner(beforeStep);
  const dateMsAgo = (ms: number): Date => new Date(nowMs - ms);
  const inPages = (deletePage: (sql: Sql) => Promise<number>): Promise<number> =>
    steps.runStep(() => deleteInPages(pool, deletePage, steps.beforeStatement));
  const single = (work: () => Promise<number>): Promise<number> =>
    steps.runStep(async () => {
      await steps.beforeStatement();
      return work();
    });
  const removed = {
    days: await single(() => pool.transaction((tx) => dropOldPartitions(tx, dateMsAgo(retention.deliveryLogMs)))),
    keys: await inPages(deletePagesOfOldKeys(dateMsAgo(retention.idempotencyKeysMs))),
    hooks: await inPages((sql) => deleteRemovedHooks(sql, dateMsAgo(retention.removedHooksMs))),
    pushes: await inPages((sql) => deleteOldPushLog(sql, dateMsAgo(retention.pushLogMs), DELETE_PAGE_ROWS)),
    // The clean-up of the delivery log finds hooks with too many rows by these counts. So the counts are kept as long
    // as the rows.
    stats: await inPages((sql) =>
      deleteOldHookStats(
        sql,
        dateMsAgo(Math.max(MIN_HOOK_STATS_RETENTION_MS, retention.deliveryLogMs)),
        DELETE_PAGE_ROWS,
      ),
    ),
    attempts: await steps.runStep(() =>
      trimAttemptsPerHook(pool, { keep: retention.deliveryLogRowsPerHook, nowMs, beforeStep: steps.beforeStatement }),
    ),
  };
  steps.throwFirstFailure();
  return removed;
}

/** Runs steps even after a failed one, until the round is aborted. */
class StepRunner {
  readonly #beforeStep: () => Promise<void>;
  readonly #failures: unknown[] = [];
  #isAborted = false;

  constructor(beforeStep: () => Promise<void>) {
    this.#beforeStep = beforeStep;
  }

  /** Each step awaits this before each statement; a rejection aborts the round. */
  readonly beforeStatement = async (): Promise<void> => {
    this.#isAborted = true;
    await this.#beforeStep();
    this.#isAborted = false;
  };

  async runStep(step: () => Promise<number>): Promise<number> {
    try {
      return await step();
    } catch (error) {
      if (this.#isAborted) throw error;
      this.#failures.push(error);
      return 0;
    }
  }

  throwFirstFailure(): void {
    if (this.#failures.length > 0) throw this.#failures[0];
  }
}

async function dropOldPartitions(tx: Transaction, before: Date): Promise<number> {
  await tx`select pg_advisory_xact_lock(${PARTITION_LOCK_KEY})`;
  const rows = await tx<{ name: string }[]>`
    select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where i.inhparent = 'delivery_attempt'::regclass and c.relname ~ '^delivery_attempt_[0-9]{8}$'
      and c.relname < ${partitionName(before)}`;
  for (const { name } of rows) await tx`drop table ${tx(name)}`;
  return rows.length;
}

/**
 * Returns a function that deletes the next page of old keys, from the oldest key on. Each page starts where the
 * previous one ended, or it would step over deleted keys.
 */
function deletePagesOfOldKeys(before: Date): (sql: Sql) => Promise<number> {
  // The time is text: a Date has no microseconds.
  let from = '-infinity';
  return async (sql) => {
    const [row] = await sql<{ count: number; last: string | null }[]>`
      with gone as (
        delete from idempotency_key where ctid = any(array(
          select ctid from idempotency_key
          where created_at >= ${from}::text::timestamptz and created_at < ${before}
          order by created_at limit ${DELETE_PAGE_ROWS}))
        returning created_at
      )
      select count(*) as count, max(created_at)::text as last from gone`;
    from = row!.last ?? from;
    return row!.count;
  };
}

async function deleteRemovedHooks(sql: Sql, before: Date): Promise<number> {
  const rows = await sql`
    delete from reverse_hook where id in (
      select id from reverse_hook where removed_at < ${before} limit ${DELETE_PAGE_ROWS}) returning 1`;
  return rows.length;
}

/**
 * Runs short statements one after the other, so that none holds its locks for long; `deletePage` returns the number of
 * rows rows that it removed.
 */
export async function deleteInPages(
  pool: Pool,
  deletePage: (sql: Sql) => Promise<number>,
  beforeStep: () => Promise<void>,
): Promise<number> {
  let totalDeleted = 0;
  for (let pages = 0; pages < MAX_DELETE_PAGES; pages += 1) {
    await beforeStep();
    const count = await pool.run(deletePage, SLOW_QUERY_TIMEOUT_MS);
    totalDeleted += count;
    if (count < DELETE_PAGE_ROWS) break;
  }
  return totalDeleted;
}

function partitionName(day: Date): string {
  return `delivery_attempt_${day.toISOString().slice(0, 10).replaceAll('-', '')}`;
}
