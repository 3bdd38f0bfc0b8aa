import type { AccountId, ConversationId, Seq } from '../../model/ids.ts';
import { mentionsOf } from '../../model/mentions.ts';
import type { Fragment, Sql } from '../db/connection.ts';
import type { PushClaim, PushRecipient, ClaimedPush } from './push-claims.ts';

/** Messages of a row that are looked at for what it says and for mentions. */
export const MAX_CANDIDATE_MESSAGES_PER_PUSH = 10;
/** Characters of the newest, more than any vendor takes; and of the others, which count for their mentions. */
const NEWEST_MESSAGE_CHARACTERS = 4_000;
export const OLDER_MESSAGE_CHARACTERS = 1_000;

/** A message that a push stands for. */
export interface PushCandidateMessage {
  readonly seq: Seq;
  readonly sender: string;
  /** The beginning of a long one. */
  readonly text: string;
  /** Nicks, of the beginning. */
  readonly mentions: readonly string[];
  /** Names of the files that it carries. */
  readonly files: readonly string[];
}

/** What a row is about when it is sent. */
export interface NotifiedContent {
  readonly claim: PushClaim & PushRecipient;
  /** Of the conversation; null: it is a private one. */
  readonly title: string | null;
  /** The newest, newest first; at least one. */
  readonly messages: readonly PushCandidateMessage[];
  /** Of the newest of them, by the database's clock. */
  readonly ageMs: number;
}

/**
 * What claimed rows are about, in their order; null: nothing any more, since there is no recipient, or the messages were
 * deleted, or tell of alerts that have ended, or their sender was blocked. The messages of a conversation are read once for
 * all its devices: they are the same for nearly everybody.
 */
export async function readNotifiedContent(
  sql: Sql,
  claims: readonly ClaimedPush[],
): Promise<(NotifiedContent | null)[]> {
  const wanted = claims.map((claim) => (hasRecipient(claim) ? wantedRangeOf(claim) : null));
  const found = wanted.filter((each) => each !== null);
  if (found.length === 0) return claims.map(() => null);
  const shared = await readRanges(sql, sharedRangesByKey(found));
  const apart = found.filter(({ claim, key }) => needsSeparateRead(claim, shared.get(key) ?? []));
  const own = await readSeparately(sql, apart);
  return wanted.map((each) => {
    if (each === null) return null;
    const messages = own.get(each) ?? messagesSince(shared.get(each.key) ?? [], each.range.firstSeq);
    const [newest] = messages;
    return newest === undefined ? null : { claim: each.claim, title: newest.title, messages, ageMs: newest.ageMs };
  });
}

function hasRecipient(claim: ClaimedPush): claim is PushClaim & PushRecipient {
  return claim.accountId !== null;
}

/** Messages of a conversation: for an account without its own and without those of whom it has blocked; null: all. */
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

/** What is to be found for a claim. */
interface WantedRange {
  readonly claim: PushClaim & PushRecipient;
  readonly range: MessageRangeForAccount;
  /** The same for all devices that are told up to the same message. */
  readonly key: string;
}

function wantedRangeOf(claim: PushClaim & PushRecipient): WantedRange {
  const { conversationId, lastSeq, accountId } = claim;
  const firstSeq = Math.max(claim.firstSeq, claim.readSeq + 1) as Seq;
  return { claim, range: { conversationId, firstSeq, lastSeq, accountId }, key: `${conversationId}:${lastSeq}` };
}

/** For all of a key together, from the first message that is for any of them. */
function sharedRangesByKey(wanted: readonly WantedRange[]): ReadonlyMap<string, MessageRangeForAccount> {
  const ranges = new Map<string, MessageRangeForAccount>();
  for (const { range, key } of wanted) {
    const other = ranges.get(key);
    if (other === undefined || range.firstSeq < other.firstSeq) ranges.set(key, { ...range, accountId: null });
  }
  return ranges;
}

/** Whether which ones are for this recipient cannot be told from what is read for all. */
function needsSeparateRead({ hasBlocked, accountId }: PushRecipient, shared: readonly PushMessageRow[]): boolean {
  return hasBlocked || shared.some(({ senderId }) => senderId === accountId);
}

/** Without a copy where all of them are. */
function messagesSince(messages: readonly PushMessageRow[], firstSeq: Seq): readonly PushMessageRow[] {
  const last = messages.at(-1);
  return last === undefined || last.seq >= firstSeq ? messages : messages.filter(({ seq }) => seq >= firstSeq);
}

async function readSeparately(
  sql: Sql,
  apart: readonly WantedRange[],
): Promise<ReadonlyMap<WantedRange, readonly PushMessageRow[]>> {
  return apart.length === 0 ? new Map() : readRanges(sql, new Map(apart.map((each) => [each, each.range])));
}

/** A message that showed an alert and was edited when it ended; a message posted for the end is not one. */
const isEditedToResolved = (sql: Sql): Fragment => sql`
  (m.edited_at is not null and exists (
    select from alert a where a.conversation_id = m.conversation_id and a.seq = m.seq and a.state = 'resolved'))`;

/** The newest of each range that are not deleted, and whose alert has not ended, newest first. */
async function readRanges<Key>(
  sql: Sql,
  wanted: ReadonlyMap<Key, MessageRangeForAccount>,
): Promise<ReadonlyMap<Key, readonly PushMessageRow[]>> {
  const [keys, ranges] = [[...wanted.keys()], [...wanted.values()]];
  const rows = await sql<(Omit<PushMessageRow, 'mentions'> & { nth: number })[]>`
    select r.nth, n.seq, n.sender_id as "senderId", coalesce(n.label, a.name) as sender, n.text, c.title,
      (select coalesce(json_agg(f ->> 'name'), '[]') from jsonb_array_elements(n.attachments) f) as files,
      ceil(extract(epoch from now() - n.sent_at) * 1000)::bigint as "ageMs"
    -- Not arrays: a plan for their lengths would be made each time, which takes four times as long as to carry it out.
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
