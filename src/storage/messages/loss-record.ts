import type { Sql, Transaction } from '../db/connection.ts';

/** The last time that a node found that the database had lost committed changes. */
export interface LossRecord {
  readonly at: Date;
  /** The log epoch since that loss. */
  readonly epoch: number;
  /** The number of conversations in which the node knew changes that the database lacks. */
  readonly conversations: number;
}

const LOSS_SETTING_NAME = 'history_lost';

/** Stores the record of the last loss for `klatch doctor`, which reads neither logs nor metrics. */
export async function recordLoss(sql: Sql, { at, epoch, conversations }: LossRecord): Promise<void> {
  const value = JSON.stringify({ at: at.toISOString(), epoch, conversations });
  await sql`
    insert into setting (name, value) values (${LOSS_SETTING_NAME}, ${value})
    on conflict (name) do update set value = excluded.value`;
}

/** Reads the record; null: no loss was ever found. */
export async function findLossRecord(sql: Sql | Transaction): Promise<LossRecord | null> {
  const [row] = await (sql as Sql)<{ value: string }[]>`select value from setting where name = ${LOSS_SETTING_NAME}`;
  if (row === undefined) return null;
  const { at, epoch, conversations } = JSON.parse(row.value) as { at: string; epoch: number; conversations: number };
  return { at: new Date(at), epoch, conversations };
}
