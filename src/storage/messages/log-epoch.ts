import type { ConversationId, LogEpoch, Rev, Seq } from '../../model/ids.ts';
import type { Fragment, Sql, Transaction } from '../db/connection.ts';

/** The current log epoch, as SQL. It costs one index look-up for each statement, whatever the number of rows. */
const selectCurrentLogEpoch = (sql: Sql | Transaction): Fragment => (sql as Sql)`
  coalesce((select s.value::integer from setting s where s.name = 'log_epoch'), 0)`;

/** The log epoch before the current one, as SQL. */
const selectPreviousLogEpoch = (sql: Sql | Transaction): Fragment => (sql as Sql)`
  coalesce((select s.value::integer from setting s where s.name = 'previous_log_epoch'), 0)`;

/**
 * The assignments of the log epoch in every update of a head `h` that raises `last_rev`. The first change of a
 * conversation in an epoch stores the rev after which that epoch begins. The statement needs `logEpochCte`.
 */
export const stampHeadEpoch = (sql: Sql | Transaction): Fragment => (sql as Sql)`
  epoch_rev = case when h.epoch = (select epoch from log_epoch) then h.epoch_rev else h.last_rev end,
  epoch = (select epoch from log_epoch)`;

/** The CTE `log_epoch`, which the assignments of `stampHeadEpoch` read. */
export const logEpochCte = (sql: Sql | Transaction): Fragment => (sql as Sql)`
  log_epoch as (select ${selectCurrentLogEpoch(sql)} as epoch)`;

/** Tells a reader that knows an earlier log epoch which changes of a conversation it may keep. */
export interface EpochBoundary {
  /** The current log epoch. */
  readonly currentEpoch: LogEpoch;
  /**
   * The epoch before the current one. A reader that knows neither of the two epochs keeps nothing of the conversation.
   */
  readonly previousEpoch: LogEpoch;
  /** A reader that knows the previous epoch keeps changes up to this rev, and drops those with a greater rev. */
  readonly epochRev: Rev;
}

/**
 * The columns of an `EpochBoundary`, from a head `h`. If the conversation has no change in the current epoch, all its
 * changes are older, so `epochRev` is its last rev.
 */
export const epochBoundaryColumns = (sql: Sql | Transaction): Fragment => (sql as Sql)`
  ${selectCurrentLogEpoch(sql)} as "currentEpoch", ${selectPreviousLogEpoch(sql)} as "previousEpoch",
  case when h.epoch = ${selectCurrentLogEpoch(sql)} then h.epoch_rev else h.last_rev end as "epochRev"`;

/** Reads the current log epoch: 0 until it is raised for the first time. */
export async function readLogEpoch(sql: Sql | Transaction): Promise<LogEpoch> {
  const [row] = await (sql as Sql)<{ epoch: LogEpoch }[]>`select ${selectCurrentLogEpoch(sql)} as epoch`;
  return row!.epoch;
}

/** Reads the log epochs in which messages of a conversation were written. A message that does not exist is left out. */
export async function findMessageEpochs(
  sql: Sql | Transaction,
  conversationId: ConversationId,
  seqs: readonly Seq[],
): Promise<ReadonlyMap<Seq, LogEpoch>> {
  const rows = await (sql as Sql)<{ seq: Seq; epoch: LogEpoch }[]>`
    select seq, epoch from message where conversation_id = ${conversationId} and seq = any(${[...seqs]}::bigint[])`;
  return new Map(rows.map(({ seq, epoch }) => [seq, epoch]));
}

/**
 * Begins a new epoch of the log, because this database may lack changes that a reader has seen. The number of the epoch
 * is the Unix time in minutes by the database's clock, or the last epoch + 1 if that is greater. It is also greater
 * than `floor`: an epoch that a node knows, and that the database may have lost. Two concurrent calls run one after the
 * other and give two numbers.
 */
export function raiseLogEpoch(sql: Sql, floor = 0): Promise<LogEpoch> {
  return sql.begin<LogEpoch>((tx) => raiseLogEpochWithin(tx, floor));
}

/**
 * Like `raiseLogEpoch`, within the caller's transaction.
 *
 * The lock of the table waits for all statements that write to the log, and blocks new ones until the commit.
 * PostgreSQL takes the snapshot of a statement once it has its table locks, so each blocked statement reads the new
 * epoch. So no change of the old epoch is committed after the commit of the new one.
 */
export async function raiseLogEpochWithin(tx: Transaction, floor = 0): Promise<LogEpoch> {
  await tx`lock table conversation_head in share row exclusive mode`;
  const [row] = await tx<{ epoch: LogEpoch }[]>`
    with last as (
      select ${selectCurrentLogEpoch(tx)} as epoch
    ), next as (
      select greatest(floor(extract(epoch from clock_timestamp()) / 60)::integer, last.epoch + 1, ${floor}::integer + 1) as epoch
      from last
    ), written as (
      insert into setting (name, value)
      select 'log_epoch', next.epoch::text from next
      union all
      select 'previous_log_epoch', last.epoch::text from last
      on conflict (name) do update set value = excluded.value
    )
    select epoch from next`;
  return row!.epoch;
}
