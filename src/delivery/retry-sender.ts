import type { Seq } from '../model/ids.ts';
import { MAX_RETRY_ROWS, type RetryRow } from '../storage/hooks/retries.ts';
import type { RetryRecord } from '../storage/hooks/settlement.ts';
import { ERROR_DELAY, type StrategyDeps, type Delay } from './delivery-strategy.ts';
import { isMessageRefused, toAttemptRecord, type AttemptResult } from './attempt-result.ts';
import type { NextRequestOrSkip } from './request-body-builder.ts';
import { retryDelayMs } from '../model/retry-policy.ts';
import { dueIn } from './next-attempt.ts';
import type { NotSentOrUnknown } from './sender.ts';

/** Everything of a row's range. */
const UNLIMITED_MESSAGES = Number.POSITIVE_INFINITY;

/** Takes a request that is due apart and sends it, one at a time: for a hook whose other requests go in order. */
export async function sendRetry(deps: StrategyDeps): Promise<Delay | null> {
  const { retryQueue, tracker, limiter } = deps;
  const row = await retryQueue.take(() => tracker.flush());
  if (row === null) return null;
  let result: AttemptResult | NotSentOrUnknown | 'obsolete' = 'unknown';
  try {
    const slot = await limiter.acquire();
    if (slot === null) return ERROR_DELAY;
    try {
      result = await attemptRow(deps, row);
    } finally {
      limiter.release(slot);
    }
  } finally {
    // Whatever was thrown: the row is as due as before.
    if (typeof result === 'string' && result !== 'obsolete') retryQueue.done('unknown');
  }
  if (result === 'cancelled') return null;
  if (result === 'unknown') return ERROR_DELAY;
  if (result === 'obsolete') return discardRetryRow(deps, row);
  if (result.outcome.code === 410 && (await deps.tryRemoveOrReload(result))) {
    retryQueue.done('unknown');
    return null;
  }
  const record = toAttemptRecord(result, row.attempts + 1);
  if (result.outcome.code !== 410) deps.counts.add(record);
  const retries = updateQueueAfterRetry(deps, row, result);
  // Requests in order have their own health: what was asked for again does not hold them back.
  tracker.settle({}, { epoch: result.epoch, attempts: [record], retries });
  await tracker.waitForCapacity();
  return null;
}

/**
 * Ends the rows ahead of a lane that goes in order: they date from when its hook asked for none, and what they stand for
 * comes in its turn. To be called before it goes on, when nobody else settles for the hook any more. Null: it is done.
 */
export async function discardRetriesPastCursor({ retryQueue, tracker, sender }: StrategyDeps): Promise<Delay | null> {
  const rows = await retryQueue.startingAfter(tracker.progress.cursor);
  if (rows.length === 0) return null;
  const epoch = sender.epoch;
  if (epoch === null) return ERROR_DELAY;
  tracker.settle({}, { epoch, attempts: [], retries: rows.map((row) => ({ ...row, nextAt: null })) });
  retryQueue.discarded(rows.length);
  return null;
}

/** Sends what a row stands for. `obsolete`: it is not to be sent any more. */
export async function attemptRow(
  deps: StrategyDeps,
  row: RetryRow,
): Promise<AttemptResult | NotSentOrUnknown | 'obsolete'> {
  const { requests, sender } = deps;
  let next: NextRequestOrSkip = { skippedTo: (row.seq - 1) as typeof row.seq, request: null };
  do {
    const after = next.skippedTo;
    next = await requests.next(after, { maxMessages: UNLIMITED_MESSAGES, exactLast: row.lastSeq, noReadAhead: true });
    // What is left of the range is sent once the row says so.
    if (next.isRemoved === true) {
      deps.reloadHook();
      return 'unknown';
    }
    if (next.skippedTo === after && next.request === null) return 'obsolete';
  } while (next.request === null && next.skippedTo < row.lastSeq);
  if (next.request === null || next.request.first > row.lastSeq) return 'obsolete';
  // The range is the row's, whatever of it is left out by now.
  const request = { ...next.request, first: row.seq };
  return sender.send(request, requests.idOf(request));
}

/** What a row that was taken becomes. */
export function updateQueueAfterRetry(
  deps: StrategyDeps,
  row: RetryRow,
  result: AttemptResult,
): readonly RetryRecord[] {
  const { retryQueue } = deps;
  const retries = retryRecordsAfterAttempt(deps, row, result);
  retryQueue.done(retries[0]!.nextAt ?? 'finished');
  if (retries.length > 1) retryQueue.add(retries.length - 1, retries[1]!.nextAt!);
  return retries;
}

/** What is repeated of a request: all as it was, or the messages of a batch that was refused, one by one. */
export function retryRecordsAfterAttempt(
  deps: StrategyDeps,
  row: RetryRow,
  result: AttemptResult,
): readonly RetryRecord[] {
  const { seq: first, lastSeq } = row;
  const length = lastSeq - first + 1;
  if (!isMessageRefused(result.outcome) || length === 1 || deps.retryQueue.rowCount + length > MAX_RETRY_ROWS)
    return [retryRecordAfterAttempt(deps, row, result)];
  const nextAt = new Date();
  const seqs = Array.from({ length }, (_, n) => (first + n) as Seq);
  return seqs.map((seq) => ({ seq, lastSeq: seq, attempts: 0, nextAt }));
}

function retryRecordAfterAttempt(deps: StrategyDeps, row: RetryRow, { outcome }: AttemptResult): RetryRecord {
  const { seq, lastSeq } = row;
  const attempts = row.attempts + 1;
  if (outcome.delivered) return { seq, lastSeq, attempts, nextAt: null };
  const { retryAfterMs } = outcome;
  const delayMs = retryDelayMs(deps.retryPolicy, { failures: attempts, retryAfterMs }, Math.random());
  return { seq, lastSeq, attempts, nextAt: dueIn(delayMs) };
}

/** Its messages are left out by now, or are gone. */
export function discardRetryRow(
  { retryQueue, tracker, sender, isLaneActive }: StrategyDeps,
  row: RetryRow,
): Delay | null {
  // What is left out may be another by now.
  if (!isLaneActive()) {
    retryQueue.done('unknown');
    return null;
  }
  const epoch = sender.epoch;
  retryQueue.done(epoch === null ? 'unknown' : 'finished');
  if (epoch === null) return ERROR_DELAY;
  tracker.settle({}, { epoch, attempts: [], retries: [{ ...row, nextAt: null }] });
  return null;
}
