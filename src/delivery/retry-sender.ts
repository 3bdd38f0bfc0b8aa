import type { Rev, Seq } from '../model/ids.ts';
import { MAX_RETRY_ROWS, type RetryRangeWithAttempts } from '../storage/hooks/retries.ts';
import type { RetryRange, RetryRangeUpdate } from '../storage/hooks/settlement.ts';
import { ERROR_DELAY, type StrategyDeps, type Delay } from './delivery-strategy.ts';
import { isMessageRefused, toAttemptRecord, type AttemptResult } from './attempt-result.ts';
import type { DeliveryRequest } from './request-body-builder.ts';
import { retryDelayMs } from '../model/retry-policy.ts';
import { dueIn } from './next-attempt.ts';
import type { NotSentOrUnknown } from './sender.ts';

/** A retry row is sent without a limit on the count of its messages or events: its range is the only bound. */
const UNLIMITED_MESSAGES = Number.POSITIVE_INFINITY;
const UNLIMITED_EVENTS = Number.POSITIVE_INFINITY;

/** Sends one retry row that is due, for a hook with `order: strict`. */
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
    // If the attempt has no outcome, or an exception was thrown, the row stays due.
    if (typeof result === 'string' && result !== 'obsolete') retryQueue.done('unknown');
  }
  if (result === 'cancelled') return null;
  if (result === 'unknown') return ERROR_DELAY;
  if (result === 'obsolete') return discardRetryRow(deps, row);
  if (result.outcome.code === 410 && (await deps.tryHandleGone(result))) {
    retryQueue.done('unknown');
    return null;
  }
  const record = toAttemptRecord(result, row.attempts + 1);
  if (result.outcome.code !== 410) deps.counts.add(record);
  const retries = updateQueueReturningRetries(deps, row, result);
  // The settlement does not change the hook's health: a failed redelivery must not delay the hook's other requests.
  tracker.settle({}, { leaseEpoch: result.leaseEpoch, attempts: [record], retries });
  await tracker.waitForCapacity();
  return null;
}

/**
 * Deletes the retry rows after the cursor of a lane with `order: strict`. They were written while the hook had `order:
 * none`, and the lane will send their messages in order. Call this before the lane sends, when no other lane settles
 * for the hook any longer. Null: done; otherwise try again after the pause.
 */
export async function discardRetriesPastCursor({ retryQueue, tracker, sender }: StrategyDeps): Promise<Delay | null> {
  const rows = await retryQueue.readRowsStartingAfter(tracker.progress);
  if (rows.length === 0) return null;
  const epoch = sender.usableLeaseEpoch;
  if (epoch === null) return ERROR_DELAY;
  tracker.settle({}, { leaseEpoch: epoch, attempts: [], retries: rows.map((row) => ({ ...row, nextAt: null })) });
  retryQueue.noteDiscardedRows(rows.length);
  return null;
}

/**
 * Sends the request of a retry row. `obsolete`: the hook skips all messages of the row now, or they no longer exist.
 */
export async function attemptRow(
  deps: StrategyDeps,
  row: RetryRangeWithAttempts,
): Promise<AttemptResult | NotSentOrUnknown | 'obsolete'> {
  const { requests, sender } = deps;
  const request = row.rev > 0 ? await readEventsOfRow(deps, row) : await readMessagesOfRow(deps, row);
  // A retention rule removed the first message. The lane sends the rest of the range after `skipRemovedMessages` has
  // updated the retry row.
  if (request === 'removed') {
    deps.reloadHook();
    return 'unknown';
  }
  return request === null ? 'obsolete' : sender.send(request, requests.idOf(request));
}

/**
 * Builds the request of a retry row of messages. The request covers the row's whole range, even if the hook skips some
 * of the messages now. Null: the hook skips them all. `removed`: a retention rule removed the row's first message.
 */
async function readMessagesOfRow(
  { requests }: StrategyDeps,
  row: RetryRangeWithAttempts,
): Promise<DeliveryRequest | 'removed' | null> {
  const lastSeq = row.lastSeq as Seq;
  for (let after = (row.seq - 1) as Seq; after < lastSeq;) {
    const { skippedTo, request, isNextMessageRemoved } = await requests.next(after, {
      maxMessages: UNLIMITED_MESSAGES,
      resendRangeEnd: lastSeq,
      noReadAhead: true,
    });
    if (isNextMessageRemoved === true) return 'removed';
    if (request !== null) return request.first > lastSeq ? null : { ...request, first: row.seq as Seq };
    if (skippedTo === after) return null;
    after = skippedTo;
  }
  return null;
}

async function readEventsOfRow({ events }: StrategyDeps, row: RetryRangeWithAttempts): Promise<DeliveryRequest | null> {
  if (events === null) return null;
  const lastRev = row.lastRev as Rev;
  for (let after = (row.rev - 1) as Rev; after < lastRev;) {
    const { skippedTo, request } = await events.next(after, {
      maxEvents: UNLIMITED_EVENTS,
      resendRangeEnd: lastRev,
      maxAfterSeq: UNLIMITED_MESSAGES as Seq,
    });
    if (request !== null) return { ...request, rev: row.rev as Rev };
    after = skippedTo;
  }
  return null;
}

/**
 * After the attempt of a retry row, returns the row to the queue. Returns the changes of retry rows for the settlement.
 */
export function updateQueueReturningRetries(
  deps: StrategyDeps,
  row: RetryRangeWithAttempts,
  result: AttemptResult,
): readonly RetryRangeUpdate[] {
  const { retryQueue } = deps;
  const retries = retryRecordsAfterAttempt(deps, row, result);
  retryQueue.done(retries[0]!.nextAt ?? 'finished');
  if (retries.length > 1) retryQueue.noteAddedRows(retries.length - 1, retries[1]!.nextAt!);
  return retries;
}

/**
 * The changes of retry rows after an attempt:
 * - delivered: the row is deleted;
 * - failed: the same request is due later;
 * - a batch that was refused (400, 413 or 422): one row for each message or event, due at once.
 */
export function retryRecordsAfterAttempt(
  deps: StrategyDeps,
  row: RetryRangeWithAttempts,
  result: AttemptResult,
): readonly RetryRangeUpdate[] {
  const { last } = result.request;
  if (row.rev === 0 && result.outcome.delivered && last < row.lastSeq) {
    // The row has a batch from before the hook got another product's format, which has no batches. So the request
    // delivered only the first message of the row, and the rest is due now.
    const rest = messageRange({ first: (last + 1) as Seq, last: row.lastSeq as Seq });
    return [retryRecordAfterAttempt(deps, row, result), { ...rest, attempts: 0, nextAt: new Date() }];
  }
  const length = row.rev > 0 ? result.request.revs.length : row.lastSeq - row.seq + 1;
  const isSingle = row.rev === row.lastRev && row.seq === row.lastSeq;
  if (!isMessageRefused(result.outcome) || isSingle || deps.retryQueue.rowCount + length > MAX_RETRY_ROWS)
    return [retryRecordAfterAttempt(deps, row, result)];
  const nextAt = new Date();
  if (row.rev === 0) {
    const seqs = Array.from({ length }, (_, n) => (row.seq + n) as Seq);
    return seqs.map((seq) => ({ ...messageRange({ first: seq, last: seq }), attempts: 0, nextAt }));
  }
  // The row's own rev comes first, so that its update replaces this row. The request does not have this rev if the
  // event has expired.
  const revs = new Set([row.rev, ...result.request.revs]);
  return [...revs].map((rev) => ({ ...eventRange({ first: rev, last: rev }), attempts: 0, nextAt }));
}

/** The range of a retry row for messages: its revs are 0. */
export function messageRange({ first, last }: { first: Seq; last: Seq }): RetryRange {
  return { seq: first, lastSeq: last, rev: 0, lastRev: 0 };
}

/** The range of a retry row for events: its seqs are 0. */
export function eventRange({ first, last }: { first: Rev; last: Rev }): RetryRange {
  return { seq: 0, lastSeq: 0, rev: first, lastRev: last };
}

function retryRecordAfterAttempt(
  deps: StrategyDeps,
  row: RetryRangeWithAttempts,
  { outcome }: AttemptResult,
): RetryRangeUpdate {
  const { seq, lastSeq, rev, lastRev } = row;
  const range = { seq, lastSeq, rev, lastRev };
  const attempts = row.attempts + 1;
  if (outcome.delivered) return { ...range, attempts, nextAt: null };
  const { retryAfterMs } = outcome;
  const delayMs = retryDelayMs(deps.retryPolicy, { failures: attempts, retryAfterMs }, Math.random());
  return { ...range, attempts, nextAt: dueIn(delayMs) };
}

/** Deletes a retry row if the hook now skips all its messages or events, or they no longer exist. */
export function discardRetryRow(
  { retryQueue, tracker, sender, isLaneActive }: StrategyDeps,
  row: RetryRangeWithAttempts,
): Delay | null {
  // The lane was suspended or retired meanwhile, perhaps since the hook was changed: the hook may want these messages
  // now.
  if (!isLaneActive()) {
    retryQueue.done('unknown');
    return null;
  }
  const epoch = sender.usableLeaseEpoch;
  retryQueue.done(epoch === null ? 'unknown' : 'finished');
  if (epoch === null) return ERROR_DELAY;
  tracker.settle({}, { leaseEpoch: epoch, attempts: [], retries: [{ ...row, nextAt: null }] });
  return null;
}
