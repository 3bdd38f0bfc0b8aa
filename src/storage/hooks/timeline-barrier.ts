import type { Sql, Transaction } from '../db/connection.ts';
import { raiseLogEpochWithin, readLogEpoch } from '../messages/log-epoch.ts';

/**
 * What a node found when it compared what it knows with the database. `unknown`: it ended without an orderly stop, and may
 * have forgotten what it knew last.
 */
export type TimelineFinding = 'complete' | 'missing' | 'unknown';

/** A node that has compared what it knows with the database in a timeline. */
interface NodeReport {
  readonly node: string;
  readonly timeline: number;
  readonly finding: TimelineFinding;
}

/** What the nodes have said in a timeline, and what was decided for all of them. */
interface TimelineBarrier {
  /** Whether the epoch was raised for this timeline; null: that is not decided yet. */
  readonly epochRaised: boolean | null;
  /** Somebody cannot confirm that all it knows is there. */
  readonly isLossReported: boolean;
  /** Nodes that have said nothing in it yet. */
  readonly silentNodes: readonly string[];
}

/** What was decided for a timeline. */
interface TimelineDecision {
  readonly epochRaised: boolean;
  /** True: by this call. */
  readonly isNew: boolean;
}

const DECISION = 'timeline_decision';
/** How far a raise lifts the epochs of the leases: above all that settlements of the timeline before can have. */
const RAISED_LEASE_EPOCHS = 1_000;

/** Whether a process with this id ended without an orderly stop in another timeline. */
export async function endedInOtherTimeline(sql: Sql, node: string, timeline: number): Promise<boolean> {
  const rows = await sql`select from node where id = ${node} and compared_timeline not in (0, ${timeline})`;
  return rows.length > 0;
}

/** Says what this node found; a node that the list lacks, since a standby had not heard of it, adds itself. */
export async function reportFinding(sql: Sql, { node, timeline, finding }: NodeReport): Promise<void> {
  await sql`
    insert into node (id, expires_at, compared_timeline, finding)
    values (${node}, clock_timestamp(), ${timeline}, ${finding})
    on conflict (id) do update set compared_timeline = excluded.compared_timeline, finding = excluded.finding`;
}

/** What has been said in a timeline so far. */
export async function readBarrier(sql: Sql | Transaction, timeline: number): Promise<TimelineBarrier> {
  const [row] = await (sql as Sql)<{ decision: string | null; isLossReported: boolean; silentNodes: string[] }[]>`
    select (select value from setting where name = ${DECISION}) as decision,
      exists (select from node where compared_timeline = ${timeline} and finding <> 'complete') as "isLossReported",
      to_json(array(select id from node where compared_timeline <> ${timeline} order by id)) as "silentNodes"`;
  const { decision, isLossReported, silentNodes } = row!;
  return { epochRaised: parseDecision(decision, timeline), isLossReported, silentNodes };
}

/**
 * Decides for all nodes whether the epoch is raised for this timeline, once. Null: a node has said nothing yet, and may be
 * waited for (`mayWait`).
 */
export async function decideTimeline(
  tx: Transaction,
  { timeline, mayWait, epochFloor }: { timeline: number; mayWait: boolean; epochFloor: number },
): Promise<TimelineDecision | null> {
  await lockDecision(tx);
  const { epochRaised, isLossReported, silentNodes } = await readBarrier(tx, timeline);
  if (epochRaised !== null) return { epochRaised, isNew: false };
  // Also where a loss is known: who compares behind the first write may find another change in the place of a lost one.
  if (mayWait && silentNodes.length > 0) return null;
  const raises = isLossReported || silentNodes.length > 0;
  if (raises) await raiseAndRewind(tx, timeline, epochFloor);
  await writeDecision(tx, timeline, raises);
  return { epochRaised: raises, isNew: true };
}

/**
 * Raises the epoch for a loss that is found behind the decision, unless it was raised since the node has read `knownEpoch`:
 * then somebody else has found the same. Returns whether it did.
 */
export async function raiseForLateFinding(
  tx: Transaction,
  { timeline, knownEpoch }: { timeline: number; knownEpoch: number },
): Promise<boolean> {
  await lockDecision(tx);
  if ((await readLogEpoch(tx)) > knownEpoch) return false;
  await raiseAndRewind(tx, timeline, knownEpoch);
  await writeDecision(tx, timeline, true);
  return true;
}

/** Timelines of another cluster, which a restored copy comes from, say nothing about this one's. */
export async function forgetTimelineDecision(tx: Transaction): Promise<void> {
  await tx`delete from setting where name = ${DECISION}`;
}

/** The row is there from the first start on: of two nodes that decide at once the second one finds what the first wrote. */
async function lockDecision(tx: Transaction): Promise<void> {
  await tx`insert into setting (name, value) values (${DECISION}, '') on conflict (name) do nothing`;
  await tx`select from setting where name = ${DECISION} for update`;
}

async function writeDecision(tx: Transaction, timeline: number, raises: boolean): Promise<void> {
  const value = `${timeline} ${raises ? 'raised' : 'confirmed'}`;
  await tx`update setting set value = ${value} where name = ${DECISION}`;
}

function parseDecision(value: string | null, timeline: number): boolean | null {
  const [decided, what] = (value ?? '').split(' ');
  return decided === String(timeline) && what !== undefined ? what === 'raised' : null;
}

/**
 * Settlements of the timeline before may have brought cursors with them that are ahead of the log, and would make hooks
 * skip what takes those numbers. The leases' epochs refuse those that are still on their way; the lanes of all nodes lose
 * their partitions by it, and are made anew from these rows.
 */
async function raiseAndRewind(tx: Transaction, timeline: number, epochFloor: number): Promise<void> {
  await raiseLogEpochWithin(tx, epochFloor);
  await tx`
    with locked as (select partition from lease order by partition for no key update)
    update lease l set epoch = epoch + ${RAISED_LEASE_EPOCHS}::bigint,
      timeline = coalesce(nullif(${timeline}::integer, 0), timeline)
    from locked where l.partition = locked.partition`;
  await tx`
    update reverse_hook r
    set cursor = greatest(r.start_seq, h.last_seq), batch_last_seq = null, unbatched_until = null,
      generation = r.generation + 1, cursor_generation = r.generation + 1
    from conversation_head h where h.conversation_id = r.conversation_id and r.cursor > h.last_seq`;
  await tx`
    delete from delivery_retry d using reverse_hook r, conversation_head h
    where r.id = d.hook_id and h.conversation_id = r.conversation_id and d.last_seq > h.last_seq`;
}
