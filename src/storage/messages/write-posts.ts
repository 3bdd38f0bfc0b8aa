import type { PostedExpectation } from '../../model/expectation.ts';
import type { AccountId, ConversationId, LogEpoch, Seq } from '../../model/ids.ts';
import type { Fragment, Sql } from '../db/connection.ts';
import { alertFragments, noAlertFragments, type AlertWrite, type AlertWriteResult } from './alerts.ts';
import { logEpochCte, stampHeadEpoch } from './log-epoch.ts';
import { fileFragments } from './message-log-files.ts';
import { signsOfLifeCte } from './signs-of-life.ts';

/** A message to write. */
export interface Post {
  readonly conversationId: ConversationId;
  /**
   * The right to post: the integration's `admission`, or the hash of its token if that column is null. Null: a member's
   * post, which the sender's membership admits.
   */
  readonly admission: string | null;
  readonly senderId: AccountId;
  readonly text: string;
  readonly label: string | null;
  readonly iconUrl: string | null;
  readonly hops: number;
  /** Ids of the attached files, in the order that the sender gave; nearly all posts have none. */
  readonly attachments: readonly string[];
  /** The cards of the message (`MessageCard`) as JSON; null: none. */
  readonly cardsJson: string | null;
  /**
   * The caller's idempotency key for this post, unique in the conversation, and the hash of the post's body. Null:
   * none.
   */
  readonly key: string | null;
  readonly bodyHash: string | null;
  /** An id by which the sender's clients recognise the message. A post with a client id also has a `key`. */
  readonly clientId?: string;
  /** The post's change of an alert; such a post carries no files. */
  readonly alert?: AlertWrite;
  /** The post is a sign of life for the expectation with this key, if the group has one. */
  readonly expectation?: Pick<PostedExpectation, 'key'>;
}

/**
 * The outcome of a post. A post is `refused` if
 * - the conversation is archived,
 * - the token is not (or no longer) the conversation's,
 * - the sender is no member, or the peer in a private conversation has blocked the sender,
 * - a file that it carries is not stored, not the sender's, or another message's.
 *
 * It is a `repeat` if a post with its key was written before: `seq` and `logEpoch` are those of the first such post,
 * and `sameBody` tells whether both bodies are equal. If the post changes an alert, `seq` is the message that shows the
 * alert.
 */
export type PostResult =
  | { readonly outcome: 'new'; readonly seq: Seq; readonly logEpoch: LogEpoch; readonly alert?: AlertWriteResult }
  | { readonly outcome: 'repeat'; readonly seq: Seq; readonly logEpoch: LogEpoch; readonly sameBody: boolean }
  | { readonly outcome: 'refused' };

/**
 * A `PostResult`, or `conflict`: the alert changed after the post's change of it was decided, so the post was not
 * written.
 */
export type FlushResult = PostResult | { readonly outcome: 'conflict' };

interface PostOutcomeRow {
  readonly ord: number;
  readonly seq: Seq | null;
  readonly epoch: LogEpoch | null;
  readonly outcome: FlushResult['outcome'];
  readonly same_body: boolean | null;
  /** This column and the next two exist only in flushes with a post that changes an alert. */
  readonly posted_seq?: Seq | null;
  readonly edited?: boolean;
  readonly wants_events?: boolean | null;
}

/**
 * Writes posts of any number of conversations in one statement and one commit. Returns their outcomes in the order of
 * the posts.
 *
 * The statement keeps the head row of each conversation locked until the commit. So within a conversation commits
 * happen in `seq` order, and every snapshot sees a prefix of the log without gaps. After a wait for the lock PostgreSQL
 * computes `last_seq + n` on the newest version of the head. The CTE `head` locks the heads in the order of their ids,
 * as every other transaction does that locks several heads, which prevents deadlocks. `sent_at` comes from the clock
 * under the lock, and is never earlier than that of the message before. The result rows are matched by `ord` or by
 * conversation, whatever their order.
 *
 * The sender's membership admits a member's post. The statement locks the row of the membership after the head, so it
 * reads the newest version of that row. The removal of a member holds the head's lock until its commit. So a post that
 * waited for a removal finds no membership, whatever its snapshot shows. The post also moves the read position in that
 * row, because its sender has read the messages before it.
 *
 * There are two statements. The faster one takes posts without a key, files, an alert or an expectation, if one sender
 * wrote all posts of each conversation. This function numbers these posts, and the database only adds the last seq.
 * That takes half the time: in flushes of 27 posts, 20 µs a post instead of 41. Flushes without members' posts skip the
 * look-up of memberships, those without attachments the look-up of files, and those without cards the column for them.
 */
export async function writePosts(sql: Sql, posts: readonly Post[]): Promise<FlushResult[]> {
  const numbered = numberPlainPosts(posts);
  return numbered === null ? writeAnyPosts(sql, posts) : writePlainPosts(sql, posts, numbered);
}

/** The posts of one conversation in a flush: their common admission and sender, and their number. */
interface ConversationBatch {
  readonly conversationId: ConversationId;
  readonly admission: string | null;
  readonly senderId: AccountId;
  count: number;
}

interface NumberedPosts {
  readonly byConversation: ReadonlyMap<ConversationId, ConversationBatch>;
  /** For each post, its number among the posts of its conversation in this batch, from 1. */
  readonly numbersInConversation: readonly number[];
}

/**
 * Numbers the posts of each conversation. Returns null if only the database can number them, because it may not write
 * all of them:
 * - a post has a key, files, an alert or an expectation, or
 * - the posts of a conversation differ in sender or admission.
 */
function numberPlainPosts(posts: readonly Post[]): NumberedPosts | null {
  const byConversation = new Map<ConversationId, ConversationBatch>();
  const numbersInConversation: number[] = [];
  for (const { conversationId, admission, senderId, key, attachments, alert, expectation } of posts) {
    if (key !== null || attachments.length > 0 || alert !== undefined || expectation !== undefined) return null;
    let batch = byConversation.get(conversationId);
    if (batch === undefined)
      byConversation.set(conversationId, (batch = { conversationId, admission, senderId, count: 0 }));
    if (batch.admission !== admission || batch.senderId !== senderId) return null;
    numbersInConversation.push((batch.count += 1));
  }
  return { byConversation, numbersInConversation };
}

const isMemberPost = ({ admission }: Pick<Post, 'admission'>): boolean => admission === null;
const changesAlert = ({ alert }: Pick<Post, 'alert'>): boolean => alert !== undefined;
const carriesCards = ({ cardsJson }: Pick<Post, 'cardsJson'>): boolean => cardsJson !== null;
const hasClientId = ({ clientId }: Pick<Post, 'clientId'>): boolean => clientId !== undefined;
const carriesFiles = ({ attachments }: Pick<Post, 'attachments'>): boolean => attachments.length > 0;

/** An SQL condition: the peer in a private conversation has blocked the sender. */
const senderBlockedByPeer = (sql: Sql, conversationId: Fragment, senderId: Fragment): Fragment => sql`
  exists (
    select from private_conversation p join block b on b.account_id in (p.low_id, p.high_id)
    where p.conversation_id = ${conversationId} and b.blocked_id = ${senderId})`;

/**
 * CTEs for flushes with one sender in each conversation. `member` locks the membership of each sender and moves its
 * read position in one step; `admitted` contains the conversations whose posts may be written.
 */
const admitPlainSendersMarkingRead = (sql: Sql): Fragment => sql`
  member as (
    update membership m set read_seq = greatest(m.read_seq, h.last_seq + h.n)
    from head h
    where h.admission is null and m.conversation_id = h.conversation_id and m.account_id = h.sender_id
      and not ${senderBlockedByPeer(sql, sql`h.conversation_id`, sql`h.sender_id`)}
    returning m.conversation_id
  ), admitted as (
    select h.* from head h
    where h.admission is not null or exists (select from member m where m.conversation_id = h.conversation_id)
  ),`;

async function writePlainPosts(sql: Sql, posts: readonly Post[], numbered: NumberedPosts): Promise<PostResult[]> {
  const { byConversation, numbersInConversation } = numbered;
  const conversationBatches = [...byConversation.values()];
  const hasMembers = conversationBatches.some(isMemberPost);
  const hasCards = posts.some(carriesCards);
  const rows = await sql<{ id: ConversationId; seq0: Seq; epoch: LogEpoch }[]>`
    with ${logEpochCte(sql)}, head as (
      select h.conversation_id, h.last_seq, u.admission, u.sender_id, u.n
      from unnest(
        ${conversationBatches.map((s) => s.conversationId)}::bigint[], ${conversationBatches.map((s) => s.admission)}::text[],
        ${conversationBatches.map((s) => s.senderId)}::bigint[], ${conversationBatches.map((s) => s.count)}::int[]
      ) as u(conversation_id, admission, sender_id, n)
      join conversation_head h on h.conversation_id = u.conversation_id
      where h.archived_at is null and (u.admission is null or exists (
        select from integration t where t.conversation_id = u.conversation_id and coalesce(t.admission, t.token_hash) = u.admission))
      order by h.conversation_id for no key update of h
    ), ${hasMembers ? admitPlainSendersMarkingRead(sql) : sql``} advanced as (
      update conversation_head h
      set last_seq = h.last_seq + c.n, last_rev = h.last_rev + c.n, last_at = greatest(h.last_at, clock_timestamp()),
        ${stampHeadEpoch(sql)}
      from ${hasMembers ? sql`admitted` : sql`head`} c where h.conversation_id = c.conversation_id
      returning h.conversation_id, h.last_seq - c.n as seq0, h.last_rev - c.n as rev0, h.last_at, h.epoch
    ), written as (
      insert into message (
        conversation_id, seq, rev, sender_id, text, label, icon_url, hops, epoch, sent_at ${hasCards ? sql`, cards` : sql``})
      select p.conversation_id, a.seq0 + p.n, a.rev0 + p.n, p.sender_id, p.text, p.label, p.icon_url, p.hops, a.epoch,
        a.last_at ${hasCards ? sql`, p.cards::jsonb` : sql``}
      from unnest(
        ${posts.map((p) => p.conversationId)}::bigint[], ${[...numbersInConversation]}::int[],
        ${posts.map((p) => p.senderId)}::bigint[], ${posts.map((p) => p.text)}::text[],
        ${posts.map((p) => p.label)}::text[], ${posts.map((p) => p.iconUrl)}::text[],
        ${posts.map((p) => p.hops)}::smallint[] ${hasCards ? sql`, ${posts.map((p) => p.cardsJson)}::text[]` : sql``}
      ) as p(conversation_id, n, sender_id, text, label, icon_url, hops ${hasCards ? sql`, cards` : sql``})
      join advanced a on a.conversation_id = p.conversation_id
    )
    select conversation_id as id, seq0, epoch from advanced`;
  const rowByConversation = new Map(rows.map((row) => [row.id, row]));
  return posts.map(({ conversationId }, index) => {
    const row = rowByConversation.get(conversationId);
    if (row === undefined) return { outcome: 'refused' };
    return { outcome: 'new', seq: (row.seq0 + numbersInConversation[index]!) as Seq, logEpoch: row.epoch };
  });
}

/**
 * A CTE with the memberships of the senders, of which a conversation may have several. It only locks the rows: at this
 * point the statement does not know which posts are new, and so how far the read positions move.
 */
const lockSenderMemberships = (sql: Sql): Fragment => sql`
  member as (
    select m.conversation_id, m.account_id
    from membership m join head h on h.conversation_id = m.conversation_id and h.archived_at is null
    where (m.conversation_id, m.account_id) in (select i.conversation_id, i.sender_id from input i where i.admission is null)
      and not ${senderBlockedByPeer(sql, sql`m.conversation_id`, sql`m.account_id`)}
    order by m.conversation_id, m.account_id for no key update of m
  ),`;

const hasLockedMembership = (sql: Sql): Fragment => sql`
  i.admission is null and exists (
    select from member m where m.conversation_id = i.conversation_id and m.account_id = i.sender_id)`;

const advanceReadPositions = (sql: Sql): Fragment => sql`
  , position as (
    update membership m set read_seq = greatest(m.read_seq, s.seq)
    from (
      select n.conversation_id, n.sender_id, max(a.seq0 + n.n) as seq
      from numbered n join advanced a on a.conversation_id = n.conversation_id
      where n.admission is null group by n.conversation_id, n.sender_id
    ) s
    where m.conversation_id = s.conversation_id and m.account_id = s.sender_id
  )`;

/** Columns that few posts use: the statement of a flush contains them only if one of its posts has a value. */
interface RareColumns {
  readonly cards: boolean;
  readonly clientIds: boolean;
}

/** The posts as rows of SQL; `ord` is the position of a post in the flush, from 1. */
const inputRows = (sql: Sql, posts: readonly Post[], has: RareColumns): Fragment => sql`
  select u.*
  from unnest(
    ${posts.map((p) => p.conversationId)}::bigint[], ${posts.map((p) => p.admission)}::text[],
    ${posts.map((p) => p.senderId)}::bigint[], ${posts.map((p) => p.text)}::text[],
    ${posts.map((p) => p.label)}::text[], ${posts.map((p) => p.iconUrl)}::text[],
    ${posts.map((p) => p.hops)}::smallint[], ${posts.map((p) => p.key)}::text[],
    ${posts.map((p) => p.bodyHash)}::text[] ${has.cards ? sql`, ${posts.map((p) => p.cardsJson)}::text[]` : sql``}
    ${has.clientIds ? sql`, ${posts.map((p) => p.clientId ?? null)}::text[]` : sql``}
  ) with ordinality
    as u(conversation_id, admission, sender_id, text, label, icon_url, hops, key, body_hash
      ${has.cards ? sql`, cards` : sql``} ${has.clientIds ? sql`, client_id` : sql``}, ord)`;

async function writeAnyPosts(sql: Sql, posts: readonly Post[]): Promise<FlushResult[]> {
  const hasMembers = posts.some(isMemberPost);
  const has = { cards: posts.some(carriesCards), clientIds: posts.some(hasClientId) };
  const files = posts.some(carriesFiles) ? fileFragments(sql, posts) : null;
  const candidates = files === null ? sql`fresh` : sql`accepted`;
  const alerts = posts.some(changesAlert) ? alertFragments(sql, posts, candidates) : noAlertFragments(sql, candidates);
  const rows = await sql<PostOutcomeRow[]>`
    with ${logEpochCte(sql)}, input as (
      ${inputRows(sql, posts, has)}
    ), head as (
      select h.conversation_id, h.archived_at, h.first_seq from conversation_head h
      where h.conversation_id = any(${[...new Set(posts.map((p) => p.conversationId))]}::bigint[])
      order by h.conversation_id for no key update
    ), ${hasMembers ? lockSenderMemberships(sql) : sql``} admitted as (
      select i.* from input i join head h on h.conversation_id = i.conversation_id and h.archived_at is null
      where ${hasMembers ? hasLockedMembership(sql) : sql`false`} or exists (
        select from integration t where t.conversation_id = i.conversation_id and coalesce(t.admission, t.token_hash) = i.admission)
    ), known as (
      select i.ord, k.seq, coalesce(m.epoch, 0) as epoch, k.body_hash = i.body_hash as same from admitted i
      join idempotency_key k on k.conversation_id = i.conversation_id and k.key = i.key
      left join message m on m.conversation_id = k.conversation_id and m.seq = k.seq
    ), fresh as (
      select distinct on (i.conversation_id, i.key, case when i.key is null then i.ord end) i.*
      from admitted i where not exists (select from known k where k.ord = i.ord)
      order by i.conversation_id, i.key, case when i.key is null then i.ord end, ${alerts.plainPostsFirst} i.ord
    ), ${files === null ? sql`` : sql`${files.fileCheckCtes},`} ${alerts.checkCtes} numbered as (
      ${alerts.numberedQuery}
    ), advanced as (
      update conversation_head h
      set last_seq = h.last_seq + c.n, last_rev = h.last_rev + c.revs,
        last_at = greatest(h.last_at, case when c.n > 0 then clock_timestamp() end), ${stampHeadEpoch(sql)}
      from (select conversation_id, ${alerts.messageAndRevCounts} from numbered group by conversation_id) c
      where h.conversation_id = c.conversation_id and c.revs > 0
      returning h.conversation_id, h.last_seq - c.n as seq0, h.last_rev - c.revs as rev0, h.last_at, h.epoch, h.wants_events
    ), written as (
      insert into message (
        conversation_id, seq, rev, sender_id, text, label, icon_url, hops, epoch, sent_at
        ${files === null ? sql`` : sql`, attachments`} ${has.cards ? sql`, cards` : sql``} ${has.clientIds ? sql`, client_id` : sql``})
      select n.conversation_id, a.seq0 + n.n, a.rev0 + ${alerts.revOffset}, n.sender_id, n.text, n.label, n.icon_url, n.hops, a.epoch, a.last_at
        ${files === null ? sql`` : sql`, n.attachments`} ${has.cards ? sql`, n.cards::jsonb` : sql``} ${has.clientIds ? sql`, n.client_id` : sql``}
      from numbered n join advanced a on a.conversation_id = n.conversation_id where ${alerts.becomesMessage}
    ), keyed as (
      insert into idempotency_key (conversation_id, key, seq, body_hash)
      select n.conversation_id, n.key, ${alerts.answeredSeq}, n.body_hash
      from numbered n left join advanced a on a.conversation_id = n.conversation_id where n.key is not null
    ) ${hasMembers ? advanceReadPositions(sql) : sql``} ${files === null ? sql`` : files.attachFilesCte} ${alerts.writeCtes} ${signsOfLifeCte(sql, posts)}
    select i.ord::int as ord, coalesce(k.seq, ${alerts.answeredSeq})::bigint as seq,
      coalesce(k.epoch, ${alerts.answeredEpoch}) as epoch, ${alerts.resultColumns}
      case ${alerts.conflictCase} when m.ord is null ${files === null ? sql`` : sql`or k.ord is null and n.ord is null`} then 'refused' when k.ord is null and n.ord = i.ord then 'new' else 'repeat' end as outcome,
      coalesce(k.same, n.body_hash = i.body_hash) as same_body
    from input i
    left join admitted m on m.ord = i.ord
    left join known k on k.ord = i.ord
    left join numbered n on k.ord is null and n.conversation_id = i.conversation_id and (n.ord = i.ord or n.key = i.key)
    left join advanced a on a.conversation_id = n.conversation_id
    order by i.ord`;
  const answers: FlushResult[] = Array.from({ length: posts.length });
  for (const row of rows) answers[row.ord - 1] = toFlushResult(row, posts[row.ord - 1]!);
  return answers;
}

function toFlushResult(row: PostOutcomeRow, post: Post): FlushResult {
  // Checks the outcome before the seq: a post that was not written has no seq.
  if (row.outcome === 'refused' || row.outcome === 'conflict') return { outcome: row.outcome };
  const seq = row.seq!;
  const logEpoch = row.epoch!;
  if (row.outcome === 'new' && changesAlert(post)) {
    const { posted_seq: postedSeq = null, edited: isEdited = false, wants_events: wantsEvents } = row;
    return { outcome: 'new', seq, logEpoch, alert: { postedSeq, isEdited, wantsEvents: wantsEvents === true } };
  }
  if (row.outcome === 'new') return { outcome: 'new', seq, logEpoch };
  return { outcome: 'repeat', seq, logEpoch, sameBody: row.same_body === true };
}

/** Returns those of the conversations whose head another transaction holds locked right now. */
export async function findLockedConversations(sql: Sql, ids: readonly ConversationId[]): Promise<Set<ConversationId>> {
  const rows = await sql<{ id: ConversationId }[]>`
    with free as (
      select h.conversation_id from conversation_head h where h.conversation_id = any(${[...ids]}::bigint[])
      order by h.conversation_id for no key update skip locked
    )
    select h.conversation_id as id from conversation_head h
    where h.conversation_id = any(${[...ids]}::bigint[]) and h.conversation_id not in (select conversation_id from free)`;
  return new Set(rows.map((row) => row.id));
}
