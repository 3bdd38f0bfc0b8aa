import type { Seq } from '../model/ids.ts';
import { MAX_RETRIES, type RetryRow } from '../storage/retries.ts';
import type { RetryRecord } from '../storage/settlement.ts';
import { REST, type CourseParts, type Rest } from './course.ts';
import { isRefusal, recordOf, type Sent } from './progress.ts';
import type { Ahead } from './request.ts';
import { retryDelayMs, timeIn } from './retry.ts';
import type { Unsent } from './sender.ts';

/** Everything of a row's range. */
const WHOLE = Number.POSITIVE_INFINITY;

/** Takes a request that is due apart and sends it, one at a time: for a hook whose other requests go in order. */
export async function sendApart(parts: CourseParts): Promise<Rest | null> {
  const { apart, ledger, slots } = parts;
  const row = await apart.take(() => ledger.drain());
  if (row === null) return null;
  let sent: Sent | Unsent | 'nothing' = 'undecided';
  try {
    const slot = await slots.acquire();
    if (slot === null) return REST;
    try {
      sent = await sendRow(parts, row);
    } finally {
      slots.release(slot);
    }
  } finally {
    // Whatever was thrown: the row is as due as before.
    if (typeof sent === 'string' && sent !== 'nothing') apart.done('undecided');
  }
  if (sent === 'interrupted') return null;
  if (sent === 'undecided') return REST;
  if (sent === 'nothing') return drop(parts, row);
  if (sent.outcome.code === 410 && (await parts.unregister(sent))) {
    apart.done('undecided');
    return null;
  }
  const record = recordOf(sent, row.attempts + 1);
  if (sent.outcome.code !== 410) parts.counts.add(record);
  const retries = settleRow(parts, row, sent);
  // Requests in order have their own health: what was asked for again does not hold them back.
  ledger.settle({}, { epoch: sent.epoch, attempts: [record], retries });
  await ledger.room();
  return null;
}

/**
 * Ends the rows ahead of a lane that goes in order: they date from when its hook asked for none, and what they stand for
 * comes in its turn. To be called before it goes on, when nobody else settles for the hook any more. Null: it is done.
 */
export async function dropAhead({ apart, ledger, sender }: CourseParts): Promise<Rest | null> {
  const rows = await apart.behind(ledger.progress.cursor);
  if (rows.length === 0) return null;
  const epoch = sender.epoch;
  if (epoch === null) return REST;
  ledger.settle({}, { epoch, attempts: [], retries: rows.map((row) => ({ ...row, nextAt: null })) });
  apart.dropped(rows.length);
  return null;
}

/** Sends what a row stands for. `nothing`: it is not to be sent any more. */
export async function sendRow(parts: CourseParts, row: RetryRow): Promise<Sent | Unsent | 'nothing'> {
  const { requests, sender } = parts;
  let ahead: Ahead = { passed: (row.seq - 1) as typeof row.seq, request: null };
  do {
    const after = ahead.passed;
    ahead = await requests.next(after, { messages: WHOLE, last: row.lastSeq, alone: true });
    if (ahead.passed === after && ahead.request === null) return 'nothing';
  } while (ahead.request === null && ahead.passed < row.lastSeq);
  if (ahead.request === null || ahead.request.first > row.lastSeq) return 'nothing';
  // The range is the row's, whatever of it is left out by now.
  const request = { ...ahead.request, first: row.seq };
  return sender.send(request, requests.idOf(request));
}

/** What a row that was taken becomes. */
export function settleRow(parts: CourseParts, row: RetryRow, sent: Sent): readonly RetryRecord[] {
  const { apart } = parts;
  const retries = retriesOf(parts, row, sent);
  apart.done(retries[0]!.nextAt ?? 'over');
  if (retries.length > 1) apart.add(retries.length - 1, retries[1]!.nextAt!);
  return retries;
}

/** What is repeated of a request: all as it was, or the messages of a batch that was refused, one by one. */
export function retriesOf(parts: CourseParts, row: RetryRow, sent: Sent): readonly RetryRecord[] {
  const { seq: first, lastSeq } = row;
  const length = lastSeq - first + 1;
  if (!isRefusal(sent.outcome) || length === 1 || parts.apart.count + length > MAX_RETRIES)
    return [retryOf(parts, row, sent)];
  const nextAt = new Date();
  const seqs = Array.from({ length }, (_, n) => (first + n) as Seq);
  return seqs.map((seq) => ({ seq, lastSeq: seq, attempts: 0, nextAt }));
}

function retryOf(parts: CourseParts, row: RetryRow, { outcome }: Sent): RetryRecord {
  const { seq, lastSeq } = row;
  const attempts = row.attempts + 1;
  if (outcome.delivered) return { seq, lastSeq, attempts, nextAt: null };
  const { retryAfterMs } = outcome;
  const delayMs = retryDelayMs(parts.schedule, { failures: attempts, retryAfterMs }, Math.random());
  return { seq, lastSeq, attempts, nextAt: timeIn(delayMs) };
}

/** Its messages are left out by now, or are gone. */
export function drop({ apart, ledger, sender, mayGo }: CourseParts, row: RetryRow): Rest | null {
  // What is left out may be another by now.
  if (!mayGo()) {
    apart.done('undecided');
    return null;
  }
  const epoch = sender.epoch;
  apart.done(epoch === null ? 'undecided' : 'over');
  if (epoch === null) return REST;
  ledger.settle({}, { epoch, attempts: [], retries: [{ ...row, nextAt: null }] });
  return null;
}
