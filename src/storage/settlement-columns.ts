import type { HookId, Seq } from '../model/ids.ts';
import type { AttemptRecord, Settlement } from './settlement.ts';

/** Settlements as `unnest` takes them: one array for each column. */
export interface DeliveredColumns {
  readonly lanes: LaneColumns;
  readonly attempts: AttemptColumns;
}

/** The same with what only failures, batches and requests that are repeated apart have to say. */
export interface AnyColumns extends DeliveredColumns {
  readonly trouble: TroubleColumns;
  readonly retries: RetryColumns;
}

export function deliveredColumns(settlements: readonly Settlement[]): DeliveredColumns {
  const attempts = new AttemptColumns();
  for (const { hookId, attempts: records } of settlements) for (const record of records) attempts.add(hookId, record);
  return { lanes: laneColumns(settlements), attempts };
}

export function anyColumns(settlements: readonly Settlement[]): AnyColumns {
  const retries = settlements.flatMap(({ hookId, retries: all }) => all.map((retry) => ({ ...retry, hookId })));
  return {
    ...deliveredColumns(settlements),
    trouble: troubleColumns(settlements),
    retries: {
      hookId: retries.map((retry) => retry.hookId),
      seq: retries.map((retry) => retry.seq),
      lastSeq: retries.map((retry) => retry.lastSeq),
      attempts: retries.map((retry) => retry.attempts),
      nextAt: retries.map((retry) => iso(retry.nextAt)),
    },
  };
}

function laneColumns(settlements: readonly Settlement[]) {
  return {
    hookId: settlements.map((s) => s.hookId),
    generation: settlements.map((s) => s.generation),
    epoch: settlements.map((s) => s.epoch),
    cursor: settlements.map((s) => s.cursor),
    successMs: settlements.map((s) => newest(s, 'delivered')?.at.getTime() ?? null),
  };
}

type LaneColumns = ReturnType<typeof laneColumns>;

function troubleColumns(settlements: readonly Settlement[]) {
  const errors = settlements.map((s) => newest(s, 'failed'));
  const records = settlements.flatMap((s) => s.attempts);
  return {
    failures: settlements.map((s) => s.failures),
    failingSince: settlements.map((s) => iso(s.failingSince)),
    nextAttemptAt: settlements.map((s) => iso(s.nextAttemptAt)),
    refusals: settlements.map((s) => s.refusals),
    batchLast: settlements.map((s) => s.batchLast),
    singlesLast: settlements.map((s) => s.singlesLast),
    errorMs: errors.map((error) => error?.at.getTime() ?? null),
    errorCategory: errors.map((error) => error?.category ?? null),
    errorCode: errors.map((error) => error?.code ?? null),
    outcome: records.map((record) => record.outcome),
    category: records.map((record) => record.category),
  };
}

type TroubleColumns = ReturnType<typeof troubleColumns>;

interface RetryColumns {
  readonly hookId: readonly HookId[];
  readonly seq: readonly Seq[];
  readonly lastSeq: readonly Seq[];
  readonly attempts: readonly number[];
  readonly nextAt: readonly (string | null)[];
}

/** The attempts of all settlements, in one pass: there may be thousands of them a second. */
class AttemptColumns {
  readonly hookId: HookId[] = [];
  readonly firstSeq: Seq[] = [];
  readonly lastSeq: Seq[] = [];
  readonly attempt: number[] = [];
  readonly atMs: number[] = [];
  readonly code: (number | null)[] = [];
  readonly durationMs: number[] = [];

  add(hookId: HookId, record: AttemptRecord): void {
    this.hookId.push(hookId);
    this.firstSeq.push(record.firstSeq);
    this.lastSeq.push(record.lastSeq);
    this.attempt.push(record.attempt);
    this.atMs.push(record.at.getTime());
    this.code.push(record.code);
    this.durationMs.push(record.durationMs);
  }
}

function newest(settlement: Settlement, outcome: AttemptRecord['outcome']): AttemptRecord | undefined {
  return settlement.attempts.findLast((attempt) => attempt.outcome === outcome);
}

function iso(date: Date | null): string | null {
  return date?.toISOString() ?? null;
}
