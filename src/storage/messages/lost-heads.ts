import type { ConversationId } from '../../model/ids.ts';
import type { Fragment, Sql, Transaction } from '../db/connection.ts';
import { insertNotice } from './notices.ts';
import { NOTICE_CHANGED_SEQ, UNKNOWN_CHANGED_SEQ, type WitnessedHead } from './witness.ts';

/** A conversation in which the database lacks something that this node knows to have been committed. */
export interface LostHead {
  readonly conversationId: ConversationId;
  /** The seq of the newest message and the rev of the newest change that this node knows. */
  readonly knownSeq: number;
  readonly knownRev: number;
  /**
   * The seq of the newest message and the rev of the newest change in the database; 0: it does not have the
   * conversation. If they are not lower than the known ones, other changes have taken the lost numbers.
   */
  readonly lastSeq: number;
  readonly lastRev: number;
}

const LOSS_NOTICE_KIND = 'history_lost';
/** The tolerance for comparing times in ms, because some were truncated and others rounded. */
const CLOCK_TOLERANCE_MS = 1;

/**
 * Returns those of the known heads that the database lacks: its own head is lower, or another message or change has the
 * number. The rev of a message never falls. If it is lower in the database than the rev of a change of this message
 * that the node knows, that change is lost. A message without a row is not lost: it was removed.
 */
export async function findLostHeads(sql: Sql, witnessed: readonly WitnessedHead[]): Promise<readonly LostHead[]> {
  if (witnessed.length === 0) return [];
  const isOtherMoment = (column: Fragment, knownMs: Fragment): Fragment => sql`
    ${knownMs} > 0 and abs(round(extract(epoch from ${column}) * 1000) - ${knownMs}) > ${CLOCK_TOLERANCE_MS}`;
  return sql<LostHead[]>`
    select w.conversation_id as "conversationId", w.seq as "knownSeq", w.rev as "knownRev",
      coalesce(h.last_seq, 0) as "lastSeq", coalesce(h.last_rev, 0) as "lastRev"
    from unnest(
      ${witnessed.map((each) => each.conversationId)}::bigint[], ${witnessed.map((each) => each.seq)}::bigint[],
      ${witnessed.map((each) => each.sentAtMs)}::bigint[], ${witnessed.map((each) => each.rev)}::bigint[],
      ${witnessed.map((each) => each.changedSeq)}::bigint[], ${witnessed.map((each) => each.changedAtMs)}::bigint[]
    ) as w(conversation_id, seq, sent_at_ms, rev, changed_seq, changed_at_ms)
    left join conversation_head h on h.conversation_id = w.conversation_id
    left join message newest on newest.conversation_id = w.conversation_id and newest.seq = w.seq
    left join message changed on changed.conversation_id = w.conversation_id and changed.seq = w.changed_seq
    left join message same_rev on same_rev.conversation_id = w.conversation_id and same_rev.rev = w.rev
    left join notice n on n.conversation_id = w.conversation_id and n.rev = w.rev
    where h.conversation_id is null or h.last_seq < w.seq or h.last_rev < w.rev
      or ${isOtherMoment(sql`newest.sent_at`, sql`w.sent_at_ms`)}
      or changed.rev < w.rev
      or w.changed_seq > ${NOTICE_CHANGED_SEQ} and n.rev is not null
      or w.changed_seq > ${NOTICE_CHANGED_SEQ} and same_rev.seq <> w.changed_seq
      or w.changed_seq > ${NOTICE_CHANGED_SEQ} and ${isOtherMoment(messageChangedAt(sql, sql`same_rev`), sql`w.changed_at_ms`)}
      or w.changed_seq = ${NOTICE_CHANGED_SEQ} and same_rev.seq is not null
      or w.changed_seq = ${NOTICE_CHANGED_SEQ} and ${isOtherMoment(sql`n.at`, sql`w.changed_at_ms`)}
    order by w.conversation_id`;
}

/** The time of a message's last change, as SQL. */
function messageChangedAt(sql: Sql, row: Fragment): Fragment {
  return sql`coalesce(${row}.deleted_at, ${row}.edited_at, ${row}.sent_at)`;
}

/** Reads the newest message and change of conversations from the database. */
export async function readHeads(sql: Sql, conversations: readonly ConversationId[]): Promise<WitnessedHead[]> {
  const rows = await sql<HeadRow[]>`
    select h.conversation_id as "conversationId", h.last_seq as seq, m.sent_at as "sentAt", h.last_rev as rev,
      coalesce(c.seq, case when n.rev is not null then ${NOTICE_CHANGED_SEQ}::bigint else ${UNKNOWN_CHANGED_SEQ} end) as "changedSeq",
      coalesce(n.at, ${messageChangedAt(sql, sql`c`)}) as "changedAt"
    from conversation_head h
    left join message m on m.conversation_id = h.conversation_id and m.seq = h.last_seq
    left join message c on c.conversation_id = h.conversation_id and c.rev = h.last_rev
    left join notice n on n.conversation_id = h.conversation_id and n.rev = h.last_rev
    where h.conversation_id = any(${[...conversations]}::bigint[])`;
  return rows.map(({ conversationId, seq, sentAt, rev, changedSeq, changedAt }) => {
    const sentAtMs = sentAt?.getTime() ?? 0;
    return { conversationId, seq, sentAtMs, rev, changedSeq, changedAtMs: changedAt?.getTime() ?? 0 };
  });
}

interface HeadRow extends Pick<WitnessedHead, 'conversationId' | 'seq' | 'rev' | 'changedSeq'> {
  readonly sentAt: Date | null;
  readonly changedAt: Date | null;
}

/**
 * Inserts the notice that a conversation lost history: once for each log epoch, however many nodes found the loss.
 * Returns false if the conversation itself is missing, or the notice exists.
 */
export async function insertLossNotice(
  tx: Transaction,
  { conversationId, lastSeq, knownSeq }: LostHead,
  epoch: number,
): Promise<boolean> {
  const [head] = await tx`
    select from conversation_head where conversation_id = ${conversationId} for no key update`;
  if (head === undefined) return false;
  const existingNotices = await tx`
    select from notice
    where conversation_id = ${conversationId} and kind = ${LOSS_NOTICE_KIND} and details->'epoch' = to_jsonb(${epoch}::bigint)`;
  if (existingNotices.length > 0) return false;
  const lostSeqs = knownSeq > lastSeq ? { first: lastSeq + 1, last: knownSeq } : { first: null, last: null };
  const details = { epoch, first_lost_seq: lostSeqs.first, last_lost_seq: lostSeqs.last };
  await insertNotice(tx, { conversationId, kind: LOSS_NOTICE_KIND, details });
  return true;
}
