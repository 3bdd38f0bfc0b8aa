import type { AttemptRecord, Settlement } from './settlement.ts';

/** The columns that every settlement has, in the order of their values within a row. */
const LANE_COLUMNS = ['hookId', 'generation', 'epoch', 'cursor', 'successMs'] as const;
const ATTEMPT_COLUMNS = ['hookId', 'firstSeq', 'lastSeq', 'attempt', 'atMs', 'code', 'durationMs'] as const;

/**
 * Settlements on their way to the thread that writes them. The columns that every settlement has are typed arrays,
 * which are copied to the thread as one piece of memory. That costs a third less than arrays of numbers. NaN represents
 * null. Numbers are exact up to 2^53, which no id exceeds.
 */
export interface PackedSettlements {
  /** One row of `LANE_COLUMNS` for each settlement. */
  readonly laneRows: Float64Array;
  /** One row of `ATTEMPT_COLUMNS` for each attempt. */
  readonly attemptRows: Float64Array;
  /** Null if messages were delivered and nothing else happened, which is nearly always the case. */
  readonly failureColumns: FailureColumns | null;
}

/** Columns for failures, batches, separate retries, and hooks that ask for events. */
export type FailureColumns = ReturnType<typeof toFailureColumns>;

type ColumnValues = (number | null)[];
export type LaneColumns = Record<(typeof LANE_COLUMNS)[number], ColumnValues>;
export type AttemptColumns = Record<(typeof ATTEMPT_COLUMNS)[number], ColumnValues>;

/** Passes over the attempts only once: there may be tens of thousands a second. */
export function packSettlements(settlements: readonly Settlement[]): PackedSettlements {
  let attemptCount = 0;
  for (const { attempts } of settlements) attemptCount += attempts.length;
  const laneRows = new Float64Array(settlements.length * LANE_COLUMNS.length);
  const attemptRows = new Float64Array(attemptCount * ATTEMPT_COLUMNS.length);
  let laneOffset = 0;
  let attemptOffset = 0;
  let needsFailureColumns = false;
  for (const settlement of settlements) {
    let lastSuccessAtMs = NaN;
    for (const record of settlement.attempts) {
      if (record.outcome === 'delivered') lastSuccessAtMs = record.at.getTime();
      // Only the statement with the columns of failures writes an outcome and a category.
      if (record.outcome !== 'delivered' || record.category !== null) needsFailureColumns = true;
      writeAttemptRow(attemptRows, attemptOffset, settlement.hookId, record);
      attemptOffset += ATTEMPT_COLUMNS.length;
    }
    laneRows[laneOffset] = settlement.hookId;
    laneRows[laneOffset + 1] = settlement.generation;
    laneRows[laneOffset + 2] = settlement.epoch;
    laneRows[laneOffset + 3] = settlement.cursor;
    laneRows[laneOffset + 4] = lastSuccessAtMs;
    laneOffset += LANE_COLUMNS.length;
    needsFailureColumns ||= hasFailureOrEventState(settlement);
  }
  return { laneRows, attemptRows, failureColumns: needsFailureColumns ? toFailureColumns(settlements) : null };
}

/** The columns in the form that `unnest` takes: one array for each column. */
export function unpackNumbers(packed: PackedSettlements): { lanes: LaneColumns; attempts: AttemptColumns } {
  return { lanes: toColumns(packed.laneRows, LANE_COLUMNS), attempts: toColumns(packed.attemptRows, ATTEMPT_COLUMNS) };
}

function writeAttemptRow(rows: Float64Array, offset: number, hookId: number, record: AttemptRecord): void {
  rows[offset] = hookId;
  rows[offset + 1] = record.firstSeq;
  rows[offset + 2] = record.lastSeq;
  rows[offset + 3] = record.attempt;
  rows[offset + 4] = record.at.getTime();
  rows[offset + 5] = record.code ?? NaN;
  rows[offset + 6] = record.durationMs;
}

function hasFailureOrEventState(s: Settlement): boolean {
  return (
    s.failures !== 0 ||
    s.rejections !== 0 ||
    s.batchLastSeq !== null ||
    s.unbatchedUntil !== null ||
    s.eventCursor !== null ||
    s.retries.length > 0
  );
}

function toColumns<Name extends string>(rows: Float64Array, names: readonly Name[]): Record<Name, ColumnValues> {
  const readColumn = (first: number): ColumnValues => {
    const values: ColumnValues = [];
    for (let at = first; at < rows.length; at += names.length) values.push(Number.isNaN(rows[at]) ? null : rows[at]!);
    return values;
  };
  return Object.fromEntries(names.map((name, columnIndex) => [name, readColumn(columnIndex)])) as Record<
    Name,
    ColumnValues
  >;
}

function toFailureColumns(settlements: readonly Settlement[]) {
  const errors = settlements.map((s) => s.attempts.findLast((attempt) => attempt.outcome === 'failed'));
  const records = settlements.flatMap((s) => s.attempts);
  return {
    failures: settlements.map((s) => s.failures),
    failingSince: settlements.map((s) => isoOrNull(s.failingSince)),
    nextAttemptAt: settlements.map((s) => isoOrNull(s.nextAttemptAt)),
    rejections: settlements.map((s) => s.rejections),
    batchLastSeq: settlements.map((s) => s.batchLastSeq),
    unbatchedUntil: settlements.map((s) => s.unbatchedUntil),
    eventCursor: settlements.map((s) => s.eventCursor),
    batchLastRev: settlements.map((s) => s.batchLastRev),
    unbatchedUntilRev: settlements.map((s) => s.unbatchedUntilRev),
    errorMs: errors.map((error) => error?.at.getTime() ?? null),
    errorCategory: errors.map((error) => error?.category ?? null),
    errorCode: errors.map((error) => error?.code ?? null),
    outcome: records.map((record) => record.outcome),
    category: records.map((record) => record.category),
    rev: records.map((record) => record.rev),
    lastRev: records.map((record) => record.lastRev),
    retries: retryColumns(settlements),
  };
}

function retryColumns(settlements: readonly Settlement[]) {
  const retries = settlements.flatMap(({ hookId, retries: all }) => all.map((retry) => ({ ...retry, hookId })));
  return {
    hookId: retries.map((retry) => retry.hookId),
    seq: retries.map((retry) => retry.seq),
    lastSeq: retries.map((retry) => retry.lastSeq),
    rev: retries.map((retry) => retry.rev),
    lastRev: retries.map((retry) => retry.lastRev),
    attempts: retries.map((retry) => retry.attempts),
    nextAt: retries.map((retry) => isoOrNull(retry.nextAt)),
  };
}

function isoOrNull(date: Date | null): string | null {
  return date?.toISOString() ?? null;
}
