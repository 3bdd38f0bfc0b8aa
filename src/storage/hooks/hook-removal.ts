import type { ConversationId } from '../../model/ids.ts';
import type { Transaction } from '../db/connection.ts';
import { PARTITIONS } from './lanes.ts';
import { insertNotice } from '../messages/notices.ts';
import { updateWantsEvents } from './wants-events.ts';
import type { AttemptRecord, Settlement } from './settlement.ts';

/** A hook as its lane knows it, for notices to its group. */
interface HookNoticeContext {
  /** The hook, with the generation and epoch that its rows must still have. */
  readonly settlement: Settlement;
  readonly conversationId: ConversationId;
  readonly host: string;
}

/**
 * Removes a hook whose target answered 410: clients no longer see it, its row stays for `klatch hook restore`, and the
 * group gets a notice. Rejects with StaleLaneError when the hook was changed or handed over meanwhile.
 */
export async function markHookRemovedByTarget(
  tx: Transaction,
  lane: HookNoticeContext,
  attempt: AttemptRecord,
): Promise<void> {
  const { settlement } = lane;
  await insertHookNoticeIfLeaseHolds(tx, lane, 'hook_removed');
  const removed = await tx`
    update reverse_hook set removed_at = now(), removed_by = 'target', generation = generation + 1,
      last_error_at = ${attempt.at}, last_error_category = ${attempt.category}, last_error_code = ${attempt.code}
    where id = ${settlement.hookId} and generation = ${settlement.generation} and removed_at is null
    returning id`;
  if (removed.length === 0) throw new StaleLaneError('the hook was changed meanwhile');
  await updateWantsEvents(tx, lane.conversationId);
  await tx`
    insert into delivery_attempt
      (conversation_id, hook_id, seq, last_seq, rev, last_rev, attempt, at, outcome, category, code, duration_ms)
    values (${lane.conversationId}, ${settlement.hookId}, ${attempt.firstSeq}, ${attempt.lastSeq}, ${attempt.rev},
      ${attempt.lastRev}, ${attempt.attempt}, ${attempt.at}, 'unregistered', ${attempt.category}, ${attempt.code},
      ${attempt.durationMs})
    on conflict do nothing`;
}

/**
 * Marks a hook as parked after it has failed for long. Its group gets one notice, and a second one only after the hook
 * succeeded or was resumed. Rejects with StaleLaneError when a notice is not due (any more).
 */
export async function parkHook(tx: Transaction, lane: HookNoticeContext): Promise<void> {
  const { settlement } = lane;
  await insertHookNoticeIfLeaseHolds(tx, lane, 'hook_parked');
  // The update keeps the hook's generation, so that the results of attempts in flight still count. It parks the hook
  // only if the outage that the lane saw (failing_since) continues.
  const parked = await tx`
    update reverse_hook set parked_at = now()
    where id = ${settlement.hookId} and generation = ${settlement.generation} and removed_at is null
      and parked_at is null and failures > 0 and failing_since is not distinct from ${settlement.failingSince}
    returning id`;
  if (parked.length === 0) throw new StaleLaneError('the hook was changed meanwhile');
}

/**
 * Inserts a notice about a hook and checks that the lane still holds its lease. The insert locks the head first: a
 * transaction that waits for the head then holds no lock that others need. Then the function locks the lease. Its
 * callers lock the hook last, as settlements do.
 */
async function insertHookNoticeIfLeaseHolds(
  tx: Transaction,
  { settlement, conversationId, host }: HookNoticeContext,
  kind: 'hook_removed' | 'hook_parked',
): Promise<void> {
  await insertNotice(tx, { conversationId, kind, details: { hook: settlement.hookId, host } });
  const matchingLeases = await tx`
    select from lease where partition = ${settlement.hookId % PARTITIONS} and epoch = ${settlement.epoch} for share`;
  if (matchingLeases.length === 0) throw new StaleLaneError('the lane belongs to somebody else');
}

/** Is thrown to roll back a notice about a hook that was changed or handed over meanwhile. */
export class StaleLaneError extends Error {
  override readonly name = 'StaleLaneError';
}
