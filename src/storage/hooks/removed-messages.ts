import type { HookReference } from './hook-control.ts';
import type { Seq } from '../../model/ids.ts';
import type { Transaction } from '../db/connection.ts';
import { insertNotice } from '../messages/notices.ts';

/** Messages that a retention rule removed before a hook got them. */
interface RemovedRange {
  readonly firstSeq: Seq;
  readonly lastSeq: Seq;
  readonly messageCount: number;
}

interface LockedPosition {
  readonly cursor: Seq;
  readonly url: string;
}

/**
 * Moves a hook to the first message of its group's log, past messages that a retention rule removed. It writes a row
 * `expired` to the hook's delivery log, and a notice to the group. Returns null if the hook had none of these messages
 * to deliver, if a row `expired` covers them already, or if there is no such hook.
 *
 * Any node may do it: the hook's row is locked, and the cursor moves forward only. The generation rises, so that a lane
 * in memory reads the row again; the settlements of that lane still count, as after a pause.
 */
export async function skipRemovedMessages(tx: Transaction, hook: HookReference): Promise<RemovedRange | null> {
  const { conversationId, hookId } = hook;
  // Locks the head first, like every writer of a notice about a hook.
  const [head] = await tx<{ firstSeq: Seq }[]>`
    select first_seq as "firstSeq" from conversation_head where conversation_id = ${conversationId} for no key update`;
  const [position] = await tx<LockedPosition[]>`
    select cursor, url from reverse_hook
    where id = ${hookId} and conversation_id = ${conversationId} and removed_at is null for no key update`;
  if (head === undefined || position === undefined) return null;
  const range = await cutRetries(tx, hook, head.firstSeq, position.cursor);
  if (range === null) return null;
  await tx`
    update reverse_hook set generation = generation + 1, cursor = greatest(cursor, ${head.firstSeq - 1}),
      batch_last_seq = case when cursor < ${head.firstSeq - 1} then null else batch_last_seq end,
      rejections = case when cursor < ${head.firstSeq - 1} then 0 else rejections end
    where id = ${hookId}`;
  if (await hasRecentNotice(tx, hookId, range)) return null;
  // The time is in whole milliseconds, like every time in the delivery log.
  await tx`
    insert into delivery_attempt (conversation_id, hook_id, seq, last_seq, attempt, at, outcome, duration_ms)
    values (${conversationId}, ${hookId}, ${range.firstSeq}, ${range.lastSeq}, 0,
      date_trunc('milliseconds', clock_timestamp()), 'expired', 0)
    on conflict do nothing`;
  const details = { hook: hookId, host: new URL(position.url).hostname, messages: range.messageCount };
  await insertNotice(tx, { conversationId, kind: 'hook_messages_expired', details });
  return range;
}

/**
 * Whether the group got a notice about this range in the last hour. Attempts in flight during an earlier call may have
 * written new retry rows, and the group gets no second notice about these.
 */
async function hasRecentNotice(
  tx: Transaction,
  hookId: HookReference['hookId'],
  range: RemovedRange,
): Promise<boolean> {
  const rows = await tx`
    select from delivery_attempt
    where hook_id = ${hookId} and at > now() - interval '1 hour' and outcome = 'expired'
      and rev = 0 and seq <= ${range.firstSeq} and last_seq >= ${range.lastSeq}
    limit 1`;
  return rows.length > 0;
}

/**
 * Cuts messages that retention removed out of the retry rows; the rest of a batch stays one row. Returns the range of
 * all messages that the hook loses, including those after its cursor.
 */
async function cutRetries(
  tx: Transaction,
  { conversationId, hookId }: HookReference,
  groupFirstSeq: Seq,
  cursor: Seq,
): Promise<RemovedRange | null> {
  const cut = await tx<{ seq: Seq; lastSeq: Seq; attempts: number; nextAt: Date }[]>`
    delete from delivery_retry where hook_id = ${hookId} and rev = 0 and seq < ${groupFirstSeq}
    returning seq, last_seq as "lastSeq", attempts, next_at as "nextAt"`;
  for (const { lastSeq, attempts, nextAt } of cut.filter((row) => row.lastSeq >= groupFirstSeq)) {
    await tx`
      insert into delivery_retry (conversation_id, hook_id, seq, last_seq, attempts, next_at)
      values (${conversationId}, ${hookId}, ${groupFirstSeq}, ${lastSeq}, ${attempts}, ${nextAt})
      on conflict on constraint delivery_retry_pkey
      do update set last_seq = greatest(delivery_retry.last_seq, excluded.last_seq)`;
  }
  // Leaves out retry rows after the cursor: the range after the cursor includes their messages already.
  const ranges = cut
    .filter(({ seq }) => seq <= cursor)
    .map((row) => ({ first: row.seq, last: Math.min(row.lastSeq, groupFirstSeq - 1) }));
  if (cursor < groupFirstSeq - 1) ranges.push({ first: (cursor + 1) as Seq, last: groupFirstSeq - 1 });
  if (ranges.length === 0) return null;
  return {
    firstSeq: Math.min(...ranges.map(({ first }) => first)) as Seq,
    lastSeq: Math.max(...ranges.map(({ last }) => last)) as Seq,
    messageCount: ranges.reduce((sum, { first, last }) => sum + last - first + 1, 0),
  };
}
