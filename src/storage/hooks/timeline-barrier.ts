import type { ConversationId, LogEpoch } from '../../model/ids.ts';
import type { Sql, Transaction } from '../db/connection.ts';
import { raiseLogEpochWithin, readLogEpoch } from '../messages/log-epoch.ts';
import type { LostHead } from '../messages/lost-heads.ts';

/**
 * The finding of a node that compared its witness (the newest changes that it knows) with the database.
 * - `complete`: the database has all of them.
 * - `missing`: the database lacks some.
 * - `unknown`: the node ended without an orderly stop, so its witness may lack its newest changes.
 */
export type TimelineFinding = 'complete' | 'missing' | 'unknown';

/** A node that has compared its witness with the database in a timeline. */
interface NodeReport {
  readonly node: string;
  readonly timeline: number;
  readonly finding: TimelineFinding;
}

/** The findings of the nodes in a timeline, and the decision for all of them. */
interface TimelineBarrier {
  /** Whether the log epoch was raised for this timeline; null: that is not decided yet. */
  readonly epochRaised: boolean | null;
  /** True: at least one node found that the database lacks changes, or cannot tell. */
  readonly hasNonCompleteFinding: boolean;
  /** Nodes that have reported no finding in this timeline yet. */
  readonly silentNodes: readonly string[];
}

/** The decision whether the log epoch is raised for a new timeline. One node decides for all. */
interface TimelineDecision {
  readonly epochRaised: boolean;
  /** True: this call made the decision. */
  readonly isNew: boolean;
}

const DECISION_SETTING_NAME = 'timeline_decision';
/**
 * `confirmed`: the log epoch was not raised. `raised`: it was raised before the first write of the timeline.
 * `raised_late`: it was raised after that write.
 */
type DecisionOutcome = 'confirmed' | 'raised' | 'raised_late';
/**
 * Raising the log epoch also adds this to the epoch of each lease, so that it is greater than the epoch of any
 * settlement of the previous timeline.
 */
const LEASE_EPOCH_INCREMENT = 1_000;

/**
 * Whether a process with this node id ended without an orderly stop in another timeline. An orderly stop would have
 * deleted the node's row.
 */
export async function crashedInOtherTimeline(sql: Sql, klatchNodeId: string, timeline: number): Promise<boolean> {
  const rows = await sql`select from node where id = ${klatchNodeId} and compared_timeline not in (0, ${timeline})`;
  return rows.length > 0;
}

/**
 * Stores this node's finding. It inserts the node's row if the row is missing, because a promoted standby may never
 * have received it.
 */
export async function reportFinding(sql: Sql, { node, timeline, finding }: NodeReport): Promise<void> {
  await sql`
    insert into node (id, expires_at, compared_timeline, finding)
    values (${node}, clock_timestamp(), ${timeline}, ${finding})
    on conflict (id) do update set compared_timeline = excluded.compared_timeline, finding = excluded.finding`;
}

/** Reads the findings of all nodes in a timeline so far, and the decision. */
export async function readBarrier(sql: Sql | Transaction, timeline: number): Promise<TimelineBarrier> {
  const [row] = await (sql as Sql)<
    { decision: string | null; hasNonCompleteFinding: boolean; silentNodes: string[] }[]
  >`
    select (select value from setting where name = ${DECISION_SETTING_NAME}) as decision,
      exists (select from node where compared_timeline = ${timeline} and finding <> 'complete') as "hasNonCompleteFinding",
      to_json(array(select id from node where compared_timeline <> ${timeline} order by id)) as "silentNodes"`;
  const { decision, hasNonCompleteFinding, silentNodes } = row!;
  return { epochRaised: parseDecision(decision, timeline), hasNonCompleteFinding, silentNodes };
}

/**
 * Decides for all nodes, once, whether the log epoch is raised for this timeline. Null: a node has not reported yet,
 * and the caller allows waiting (`mayWait`).
 */
export async function decideTimeline(
  tx: Transaction,
  { timeline, mayWait, epochFloor }: { timeline: number; mayWait: boolean; epochFloor: number },
): Promise<TimelineDecision | null> {
  await lockDecision(tx);
  const { epochRaised, hasNonCompleteFinding, silentNodes } = await readBarrier(tx, timeline);
  if (epochRaised !== null) return { epochRaised, isNew: false };
  // Waits for all nodes even if a loss is known. A node that compares after the first write may find another change in
  // place of a lost one.
  if (mayWait && silentNodes.length > 0) return null;
  const mustRaiseEpoch = hasNonCompleteFinding || silentNodes.length > 0;
  if (mustRaiseEpoch) await raiseEpochAndRewindHooks(tx, timeline, epochFloor);
  await writeDecision(tx, timeline, mustRaiseEpoch ? 'raised' : 'confirmed');
  return { epochRaised: mustRaiseEpoch, isNew: true };
}

/**
 * Raises the log epoch for a loss that a node finds after the decision. Returns whether it raised the epoch. It does
 * not if the epoch was raised after the node read `knownEpoch`, and
 * - before the timeline's first write, or
 * - for the same conversations.
 */
export async function raiseForLateFinding(
  tx: Transaction,
  { timeline, knownEpoch, lost }: { timeline: number; knownEpoch: LogEpoch; lost: readonly LostHead[] },
): Promise<boolean> {
  await lockDecision(tx);
  const conversations = lost.map(({ conversationId }) => conversationId);
  if ((await readLogEpoch(tx)) > knownEpoch && (await isEpochRaisedFor(tx, timeline, conversations))) return false;
  const epoch = await raiseEpochAndRewindHooks(tx, timeline, knownEpoch);
  // `epoch_rev` 0 makes a reader that knows the previous epoch drop the whole conversation: other changes may have
  // taken the lost numbers already.
  await tx`
    update conversation_head set epoch = ${epoch}, epoch_rev = 0 where conversation_id = any(${conversations}::bigint[])`;
  await writeDecision(tx, timeline, 'raised_late');
  return true;
}

/** Whether readers that know the previous epoch drop everything that these conversations have lost. */
async function isEpochRaisedFor(
  tx: Transaction,
  timeline: number,
  conversations: readonly ConversationId[],
): Promise<boolean> {
  const [row] = await tx<{ decision: string; areAllReset: boolean }[]>`
    select value as decision, not exists (
      select from conversation_head h
      where h.conversation_id = any(${[...conversations]}::bigint[])
        and (h.epoch_rev <> 0 or h.epoch <> (select s.value::integer from setting s where s.name = 'log_epoch'))
    ) as "areAllReset"
    from setting where name = ${DECISION_SETTING_NAME}`;
  return row!.decision === formatDecision(timeline, 'raised') || row!.areAllReset;
}

/**
 * Deletes the decision after a restore: the copy comes from another cluster, whose timelines are unrelated to this
 * one's.
 */
export async function deleteTimelineDecision(tx: Transaction): Promise<void> {
  await tx`delete from setting where name = ${DECISION_SETTING_NAME}`;
}

/**
 * Locks the row of the decision, and creates it if it is missing. Of two nodes that decide at the same time, the second
 * finds the first one's decision.
 */
async function lockDecision(tx: Transaction): Promise<void> {
  await tx`insert into setting (name, value) values (${DECISION_SETTING_NAME}, '') on conflict (name) do nothing`;
  await tx`select from setting where name = ${DECISION_SETTING_NAME} for update`;
}

async function writeDecision(tx: Transaction, timeline: number, outcome: DecisionOutcome): Promise<void> {
  await tx`update setting set value = ${formatDecision(timeline, outcome)} where name = ${DECISION_SETTING_NAME}`;
}

function formatDecision(timeline: number, outcome: DecisionOutcome): string {
  return `${timeline} ${outcome}`;
}

function parseDecision(value: string | null, timeline: number): boolean | null {
  const [decided, what] = (value ?? '').split(' ');
  return decided === String(timeline) && what !== undefined ? what !== 'confirmed' : null;
}

/**
 * Raises the log epoch, and moves back the hooks that are ahead of the log. Settlements of the previous timeline may
 * have moved their cursors there, and the hooks would skip the messages that get these numbers next. The function also
 * raises the epochs of the leases, so that settlements that are still in flight are refused. The lanes of all nodes
 * lose their partitions by this, and then read the rows of their hooks again.
 */
async function raiseEpochAndRewindHooks(tx: Transaction, timeline: number, epochFloor: number): Promise<LogEpoch> {
  const epoch = await raiseLogEpochWithin(tx, epochFloor);
  await tx`
    with locked as (select partition from lease order by partition for no key update)
    update lease l set epoch = epoch + ${LEASE_EPOCH_INCREMENT}::bigint,
      timeline = coalesce(nullif(${timeline}::integer, 0), timeline)
    from locked where l.partition = locked.partition`;
  await tx`
    update reverse_hook r
    set cursor = least(r.cursor, greatest(r.start_seq, h.last_seq)),
      batch_last_seq = case when r.batch_last_seq <= h.last_seq then r.batch_last_seq end,
      event_cursor = case
        when r.event_cursor > h.last_rev then greatest(r.event_start_rev, h.last_rev) else r.event_cursor end,
      batch_last_rev = case when r.batch_last_rev <= h.last_rev then r.batch_last_rev end,
      generation = r.generation + 1, cursor_generation = r.generation + 1
    from conversation_head h
    where h.conversation_id = r.conversation_id and (
      r.cursor > h.last_seq or r.batch_last_seq > h.last_seq
      or r.event_cursor > h.last_rev or r.batch_last_rev > h.last_rev)`;
  await tx`
    delete from delivery_retry d using conversation_head h
    where h.conversation_id = d.conversation_id and (d.seq > h.last_seq or d.rev > h.last_rev)`;
  // The row of a failed batch keeps the messages that still exist: no other row retries them.
  await tx`
    update delivery_retry d set last_seq = least(d.last_seq, h.last_seq), last_rev = least(d.last_rev, h.last_rev)
    from conversation_head h
    where h.conversation_id = d.conversation_id and (d.last_seq > h.last_seq or d.last_rev > h.last_rev)`;
  return epoch;
}
