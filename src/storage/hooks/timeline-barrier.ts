import type { ConversationId, LogEpoch } from '../../model/ids.ts';
import type { Sql, Transaction } from '../db/connection.ts';
import { raiseLogEpochWithin, readLogEpoch } from '../messages/log-epoch.ts';
import type { LostHead } from '../messages/lost-heads.ts';

/**
 * The finding of a node that compared its witness with the database. `unknown`: the node ended without an orderly stop,
 * and may have forgotten its newest changes.
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
  /** Whether the epoch was raised for this timeline; null: that is not decided yet. */
  readonly epochRaised: boolean | null;
  /** A node cannot confirm that the database has everything that the node knows. */
  readonly hasNonCompleteFinding: boolean;
  /** Nodes that have reported no finding in this timeline yet. */
  readonly silentNodes: readonly string[];
}

/** Whether the log's epoch is raised for a new timeline; one node decides for all. */
interface TimelineDecision {
  readonly epochRaised: boolean;
  /** True: this call made the decision. */
  readonly isNew: boolean;
}

const DECISION = 'timeline_decision';
/** `raised`: before the first write of the timeline; `raised_late`: after it. */
type DecisionOutcome = 'confirmed' | 'raised' | 'raised_late';
/**
 * A raise lifts the epochs of the leases by this, above all epochs that settlements of the previous timeline can have.
 */
const RAISED_LEASE_EPOCHS = 1_000;

/** Whether a process with this id ended without an orderly stop in another timeline. */
export async function crashedInOtherTimeline(sql: Sql, klatchNodeId: string, timeline: number): Promise<boolean> {
  const rows = await sql`select from node where id = ${klatchNodeId} and compared_timeline not in (0, ${timeline})`;
  return rows.length > 0;
}

/**
 * Stores this node's finding. It inserts the node's row if the row is missing, because the standby never received it.
 */
export async function reportFinding(sql: Sql, { node, timeline, finding }: NodeReport): Promise<void> {
  await sql`
    insert into node (id, expires_at, compared_timeline, finding)
    values (${node}, clock_timestamp(), ${timeline}, ${finding})
    on conflict (id) do update set compared_timeline = excluded.compared_timeline, finding = excluded.finding`;
}

/** The findings in a timeline so far. */
export async function readBarrier(sql: Sql | Transaction, timeline: number): Promise<TimelineBarrier> {
  const [row] = await (sql as Sql)<
    { decision: string | null; hasNonCompleteFinding: boolean; silentNodes: string[] }[]
  >`
    select (select value from setting where name = ${DECISION}) as decision,
      exists (select from node where compared_timeline = ${timeline} and finding <> 'complete') as "hasNonCompleteFinding",
      to_json(array(select id from node where compared_timeline <> ${timeline} order by id)) as "silentNodes"`;
  const { decision, hasNonCompleteFinding, silentNodes } = row!;
  return { epochRaised: parseDecision(decision, timeline), hasNonCompleteFinding, silentNodes };
}

/**
 * Decides for all nodes, once, whether the epoch is raised for this timeline. Null: a node has not reported yet, and
 * the caller allows waiting (`mayWait`).
 */
export async function decideTimeline(
  tx: Transaction,
  { timeline, mayWait, epochFloor }: { timeline: number; mayWait: boolean; epochFloor: number },
): Promise<TimelineDecision | null> {
  await lockDecision(tx);
  const { epochRaised, hasNonCompleteFinding, silentNodes } = await readBarrier(tx, timeline);
  if (epochRaised !== null) return { epochRaised, isNew: false };
  // Also waits where a loss is known: a node that compares after the first write may find another change in place of a
  // lost one.
  if (mayWait && silentNodes.length > 0) return null;
  const raises = hasNonCompleteFinding || silentNodes.length > 0;
  if (raises) await raiseAndRewind(tx, timeline, epochFloor);
  await writeDecision(tx, timeline, raises ? 'raised' : 'confirmed');
  return { epochRaised: raises, isNew: true };
}

/**
 * Raises the epoch for a loss that a node finds after the decision. It does not raise where the epoch was raised since
 * the node read `knownEpoch`, either before the timeline's first write, or for the same conversations. Returns whether
 * it raised.
 */
export async function raiseForLateFinding(
  tx: Transaction,
  { timeline, knownEpoch, lost }: { timeline: number; knownEpoch: LogEpoch; lost: readonly LostHead[] },
): Promise<boolean> {
  await lockDecision(tx);
  const conversations = lost.map(({ conversationId }) => conversationId);
  if ((await readLogEpoch(tx)) > knownEpoch && (await isEpochRaisedFor(tx, timeline, conversations))) return false;
  const epoch = await raiseAndRewind(tx, timeline, knownEpoch);
  // Other changes may have taken the lost numbers already: a reader that knows the previous epoch has to drop the whole
  // conversation.
  await tx`
    update conversation_head set epoch = ${epoch}, epoch_rev = 0 where conversation_id = any(${conversations}::bigint[])`;
  await writeDecision(tx, timeline, 'raised_late');
  return true;
}

/** Whether readers of the previous epoch drop everything that these conversations have lost. */
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
    from setting where name = ${DECISION}`;
  return row!.decision === formatDecision(timeline, 'raised') || row!.areAllReset;
}

/** Deletes the decision: a restored copy comes from another cluster, whose timelines are unrelated to this one's. */
export async function forgetTimelineDecision(tx: Transaction): Promise<void> {
  await tx`delete from setting where name = ${DECISION}`;
}

/**
 * Locks the row of the decision, and creates it if it is missing. Of two nodes that decide at the same time, the second
 * finds the first one's decision.
 */
async function lockDecision(tx: Transaction): Promise<void> {
  await tx`insert into setting (name, value) values (${DECISION}, '') on conflict (name) do nothing`;
  await tx`select from setting where name = ${DECISION} for update`;
}

async function writeDecision(tx: Transaction, timeline: number, outcome: DecisionOutcome): Promise<void> {
  await tx`update setting set value = ${formatDecision(timeline, outcome)} where name = ${DECISION}`;
}

function formatDecision(timeline: number, outcome: DecisionOutcome): string {
  return `${timeline} ${outcome}`;
}

function parseDecision(value: string | null, timeline: number): boolean | null {
  const [decided, what] = (value ?? '').split(' ');
  return decided === String(timeline) && what !== undefined ? what !== 'confirmed' : null;
}

/**
 * Settlements of the previous timeline may have moved cursors ahead of the log: hooks would skip the messages that get
 * these numbers next. The higher epochs of the leases refuse settlements that are still in flight. They also take the
 * partitions from the lanes of all nodes, which then read the rows of their hooks again.
 */
async function raiseAndRewind(tx: Transaction, timeline: number, epochFloor: number): Promise<LogEpoch> {
  const epoch = await raiseLogEpochWithin(tx, epochFloor);
  await tx`
    with locked as (select partition from lease order by partition for no key update)
    update lease l set epoch = epoch + ${RAISED_LEASE_EPOCHS}::bigint,
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
  // A failed batch keeps the messages that still exist: no other row retries them.
  await tx`
    update delivery_retry d set last_seq = least(d.last_seq, h.last_seq), last_rev = least(d.last_rev, h.last_rev)
    from conversation_head h
    where h.conversation_id = d.conversation_id and (d.last_seq > h.last_seq or d.last_rev > h.last_rev)`;
  return epoch;
}
