import type { ConversationId } from '../../model/ids.ts';
import type { Transaction } from '../db/connection.ts';
import { PARTITIONS } from './lanes.ts';
import { insertNotice } from '../messages/notices.ts';
import { updateWantsEvents } from './wants-events.ts';
import type { AttemptRecord, Settlement } from './settlement.ts';

/** A hook as its lane knows it, for what is told to its group. */
interface HookNoticeContext {
  /** Whose hook, generation and epoch have to hold still. */
  readonly settlement: Settlement;
  readonly conversationId: ConversationId;
  readonly host: string;
}

/**
 * A target answered 410: the hook is gone for its clients, its row stays for `klatch hook restore`, and the group gets a
 * notice. Rejects with StaleLaneError when the hook was changed or handed over meanwhile.
 */
export async function removeHookByTarget(
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
 * A hook has failed for so long that it reads as parked: its group gets one notice, and no second one before it has
 * succeeded or was resumed. Rejects with StaleLaneError when there is nothing to tell (any more).
 */
export async function parkHook(tx: Transaction, lane: HookNoticeContext): Promise<void> {
  const { settlement } = lane;
  await insertHookNoticeIfLeaseHolds(tx, lane, 'hook_parked');
  // The generation stays: nothing changes for the attempts. Another outage than the one that lasted is not parked.
  const parked = await tx`
    update reverse_hook set parked_at = now()
    where id = ${settlement.hookId} and generation = ${settlement.generation} and removed_at is null
      and parked_at is null and failures > 0 and failing_since is not distinct from ${settlement.failingSince}
    returning id`;
  if (parked.length === 0) throw new StaleLaneError('the hook was changed meanwhile');
}

/** The head first: whoever waits for it holds nothing that others wait for. Then lease and hook, as settlements do. */
async function insertHookNoticeIfLeaseHolds(
  tx: Transaction,
  { settlement, conversationId, host }: HookNoticeContext,
  kind: 'hook_removed' | 'hook_parked',
): Promise<void> {
  await insertNotice(tx, { conversationId, kind, details: { hook: settlement.hookId, host } });
  const fence = await tx`
    select from lease where partition = ${settlement.hookId % PARTITIONS} and epoch = ${settlement.epoch} for share`;
  if (fence.length === 0) throw new StaleLaneError('the lane belongs to somebody else');
}

/** Rolls back what was to be told of a hook that was changed or handed over meanwhile. */
export class StaleLaneError extends Error {
  override readonly name = 'StaleLaneError';
}
