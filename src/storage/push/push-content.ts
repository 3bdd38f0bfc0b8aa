import type { AccountId, ConversationId, Seq } from '../../model/ids.ts';
import { mentionsOf } from '../../model/mentions.ts';
import type { Fragment, Sql } from '../db/connection.ts';
import type { PushClaim, PushRecipient, ClaimedPush } from './push-claims.ts';

/** The maximum number of a push's messages that are read for its text and for mentions. */
export const MAX_CANDIDATE_MESSAGES_PER_PUSH = 10;
/**
 * The numbers of characters that are read: of the newest message (more than any vendor takes), and of older ones, which
 * are only searched for mentions.
 */
const NEWEST_MESSAGE_CHARACTERS = 4_000;
export const OLDER_MESSAGE_CHARACTERS = 1_000;

/** A message that a push covers. */
export interface PushCandidateMessage {
  readonly seq: Seq;
  readonly sender: string;
  /** The text of the message, or the beginning of a long text. */
  readonly text: string;
  /** The nicks that `text` mentions. */
  readonly mentions: readonly string[];
  /** The names of the attached files. */
  readonly files: readonly string[];
}

/** The contents of a push at the time when it is sent. */
export interface NotifiedContent {
  readonly claim: PushClaim & PushRecipient;
  /** The title of the conversation; null: it is private. */
  readonly title: string | null;
  /** The messages that the push covers, the newest first; at least one. */
  readonly messages: readonly PushCandidateMessage[];
  /** The age of the newest message, by the database's clock. */
  readonly ageMs: number;
}

/**
 * The contents of claimed pushes, in the order of `claims`. Null: a push has nothing to send, since
 * - it has no recipient,
 * - its messages were deleted or are about alerts that have ended, or
 * - the recipient blocked their sender.
 *
 * The messages of a conversation are read once for all its devices: they are the same for nearly every recipient.
 */
export async function readNotifiedContent(
  sql: Sql,
  claims: readonly ClaimedPush[],
): Promise<(NotifiedContent | null)[]> {
  const rangesOrNull = claims.map((claim) => (hasRecipient(claim) ? wantedRangeOf(claim) : null));
  const wantedRanges = rangesOrNull.filter((each) => each !== null);
  if (wantedRanges.length === 0) return claims.map(() => null);
  const sharedMessages = await readRanges(sql, sharedRangesByKey(wantedRanges));
  const separateRanges = wantedRanges.filter(({ claim, sharedRangeKey: key }) =>
    needsSeparateRead(claim, sharedMessages.get(key) ?? []),
  );
  const separateMessages = await readSeparately(sql, separateRanges);
  return rangesOrNull.map((each) => {
    if (each === null) return null;
    const messages =
      separateMessages.get(each) ?? messagesSince(sharedMessages.get(each.sharedRangeKey) ?? [], each.range.firstSeq);
    const [newest] = messages;
    return newest === undefined ? null : { claim: each.claim, title: newest.title, messages, ageMs: newest.ageMs };
  });
}

function hasRecipient(claim: ClaimedPush): claim is PushClaim & PushRecipient {
  return claim.accountId !== null;
}

/**
 * A range of messages of a conversation. With `accountId`, messages by this account and by accounts that it has blocked
 * are left out; null: none are left out.
 */
interface MessageRangeForAccount {
  readonly conversationId: ConversationId;
  readonly firstSeq: Seq;
  readonly lastSeq: Seq;
  readonly accountId: AccountId | null;
}

interface PushMessageRow extends PushCandidateMessage {
  readonly senderId: AccountId;
  readonly title: string | null;
  readonly ageMs: number;
}

/** The messages to find for a claim. */
interface WantedRange {
  readonly claim: PushClaim & PushRecipient;
  readonly range: MessageRangeForAccount;
  /** Equal for all pushes of a conversation that end with the same message. */
  readonly sharedRangeKey: string;
}

function wantedRangeOf(claim: PushClaim & PushRecipient): WantedRange {
  const { conversationId, lastSeq, accountId } = claim;
  const firstSeq = Math.max(claim.firstSeq, claim.readSeq + 1) as Seq;
  return {
    claim,
    range: { conversationId, firstSeq, lastSeq, accountId },
    sharedRangeKey: `${conversationId}:${lastSeq}`,
  };
}

/** One range for all claims with the same key, from the first message that any of them needs. */
function sharedRangesByKey(wanted: readonly WantedRange[]): ReadonlyMap<string, MessageRangeForAccount> {
  const ranges = new Map<string, MessageRangeForAccount>();
  for (const { range, sharedRangeKey: key } of wanted) {
    const existing = ranges.get(key);
    if (existing === undefined || range.firstSeq < existing.firstSeq) ranges.set(key, { ...range, accountId: null });
  }
  return ranges;
}

/** Whether this recipient perhaps must not get some of the messages that were read for all recipients together. */
function needsSeparateRead({ hasBlocked, accountId }: PushRecipient, shared: readonly PushMessageRow[]): boolean {
  return hasBlocked || shared.some(({ senderId }) => senderId === accountId);
}

/** The messages from `firstSeq` on. If that is all of them, returns the same array. */
function messagesSince(messages: readonly PushMessageRow[], firstSeq: Seq): readonly PushMessageRow[] {
  const last = messages.at(-1);
  return last === undefined || last.seq >= firstSeq ? messages : messages.filter(({ seq }) => seq >= firstSeq);
}

async function readSeparately(
  sql: Sql,
  separateRanges: readonly WantedRange[],
): Promise<ReadonlyMap<WantedRange, readonly PushMessageRow[]>> {
  return separateRanges.length === 0
    ? new Map()
    : readRanges(sql, new Map(separateRanges.map((each) => [each, each.range])));
}

/**
 * Whether the message `m` showed an alert and was edited when the alert ended. A message that was posted to report the
 * end does not count.
 */
const isEditedToResolved = (sql: Sql): Fragment => sql`
  (m.edited_at is not null and exists (
    select from alert a where a.conversation_id = m.conversation_id and a.seq = m.seq and a.state = 'resolved'))`;

/**
 * The newest messages of each range, newest first. Deleted messages are left out, and so are those whose alert has
 * ended.
 */
async function readRanges<Key>(
  sql: Sql,
  wanted: ReadonlyMap<Key, MessageRangeForAccount>,
): Promise<ReadonlyMap<Key, readonly PushMessageRow[]>> {
  const [keys, ranges] = [[...wanted.keys()], [...wanted.values()]];
  const rows = await sql<(Omit<PushMessageRow, 'mentions'> & { nth: number })[]>`
    select r.nth, n.seq, n.sender_id as "senderId", coalesce(n.label, a.name) as sender, n.text, c.title,
      (select coalesce(json_agg(f ->> 'name'), '[]') from jsonb_array_elements(n.attachments) f) as files,
      ceil(extract(epoch from now() - n.sent_at) * 1000)::bigint as "ageMs"
    -- JSON and not arrays: PostgreSQL would plan for the lengths of arrays each time, which takes four times as long as
    -- the query.
    from json_to_recordset(${JSON.stringify(ranges.map((each, nth) => ({ nth, ...each })))}::text::json)
      as r(nth int, "conversationId" bigint, "firstSeq" bigint, "lastSeq" bigint, "accountId" bigint)
    cross join lateral (
      select m.seq, m.sender_id, m.label, m.sent_at, m.attachments, left(m.text, case row_number() over (order by m.seq desc)
        when 1 then ${NEWEST_MESSAGE_CHARACTERS}::int else ${OLDER_MESSAGE_CHARACTERS}::int end) as text
      from message m
      where m.conversation_id = r."conversationId" and m.seq >= r."firstSeq" and m.seq <= r."lastSeq"
        and m.deleted_at is null and not ${isEditedToResolved(sql)} and (r."accountId" is null or (m.sender_id <> r."accountId"
          and not exists (select from block b where b.account_id = r."accountId" and b.blocked_id = m.sender_id)))
      order by m.seq desc limit ${MAX_CANDIDATE_MESSAGES_PER_PUSH}
    ) n
    join account a on a.id = n.sender_id
    join conversation c on c.id = r."conversationId"
    order by r.nth, n.seq desc`;
  const found = new Map<Key, PushMessageRow[]>(keys.map((key) => [key, []]));
  for (const { nth, ...row } of rows) found.get(keys[nth]!)!.push({ ...row, mentions: mentionsOf(row.text) });
  return found;
}
