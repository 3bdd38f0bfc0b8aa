import type { PostedAlertState, SenderAlert } from '../../model/alert.ts';
import type { ConversationId, Seq } from '../../model/ids.ts';
import type { MessageCard } from '../../model/message-card.ts';
import type { Fragment, Sql } from '../db/connection.ts';

/**
 * Identifies an alert within a conversation. `source` is the format of the post that reported it: two formats may use
 * the same key.
 */
export interface AlertKey {
  readonly conversationId: ConversationId;
  readonly source: string;
  readonly key: string;
}

/** The row of an alert. */
export interface StoredAlert extends PostedAlertState {
  /** Rises with every write of the row. */
  readonly version: number;
  /** The seq of the message that shows the alert. */
  readonly seq: Seq;
  /** The text of the message that shows the alert. Null: it was deleted, or a retention rule removed it. */
  readonly shownText: string | null;
  /** The cards of the message that shows the alert. */
  readonly shownCards: readonly MessageCard[];
  /** True: the alert has posted no message for an hour. Edits of its message do not count. */
  readonly isReminderDue: boolean;
}

const ALERT_REMINDER_HOURS = 1;

/**
 * A post's change of an alert, decided from the alert's row. The flush writes the change only if the row is still the
 * same.
 */
export interface AlertWrite {
  readonly source: string;
  readonly key: string;
  /** The version and the message of the alert's row from which the change was decided; null: there was no row. */
  readonly decidedFrom: Pick<StoredAlert, 'version' | 'seq'> | null;
  /** The new text of the message that shows the alert. Null: the message keeps its text. */
  readonly editedText: string | null;
  /** The new cards of that message, if its text changes; null: none. */
  readonly editedCardsJson: string | null;
  /**
   * Whether the post's own text becomes a message: a follow-up after the edit, or the message that shows the alert from
   * now on.
   */
  readonly newMessage: 'none' | 'follow-up' | 'shows-alert';
  /** The new state of the alert's row; null: the row stays unchanged. */
  readonly state: PostedAlertState | null;
}

/** The result of an alert's change in a flush. */
export interface AlertWriteResult {
  /** The new message; null: there is none. */
  readonly postedSeq: Seq | null;
  /** True: the message that shows the alert got another text. */
  readonly isEdited: boolean;
  /** True: a reverse webhook asks for events, so that an edit of the message has written one. */
  readonly wantsEvents: boolean;
}

export async function readAlert(sql: Sql, { conversationId, source, key }: AlertKey): Promise<StoredAlert | null> {
  const [row] = await sql<AlertRow[]>`
    select a.version, a.seq, a.state, a.since, a.alerts as "senderAlerts", m.text as "shownText", m.cards as "shownCards",
      a.posted_at <= now() - ${ALERT_REMINDER_HOURS}::int * interval '1 hour' as "isReminderDue"
    from alert a left join (
      message m join conversation_head h on h.conversation_id = m.conversation_id and m.seq >= h.first_seq
    ) on m.conversation_id = a.conversation_id and m.seq = a.seq and m.deleted_at is null
    where a.conversation_id = ${conversationId} and a.source = ${source} and a.key = ${key}`;
  if (row === undefined) return null;
  const senderAlerts = row.senderAlerts.map((each) => ({ ...each, startsAt: new Date(each.startsAt) }));
  return { ...row, senderAlerts, shownCards: row.shownCards ?? [] };
}

interface AlertRow extends Omit<StoredAlert, 'senderAlerts' | 'shownCards'> {
  readonly senderAlerts: readonly StoredSenderAlert[];
  readonly shownCards: readonly MessageCard[] | null;
}

/** A sender's alert as the row of the alert stores it in JSON: the start is a text. */
type StoredSenderAlert = Omit<SenderAlert, 'startsAt'> & { readonly startsAt: string };

/**
 * Parts of the statement that writes posts (`writeAnyPosts`). There `n` is a post in the CTE `numbered`, and `a` its
 * conversation in the CTE `advanced`.
 */
interface AlertFragments {
  /** A sort order: of posts with one idempotency key, a post that changes no alert comes first. */
  readonly plainPostsFirst: Fragment;
  /**
   * CTEs before `numbered`, which check that the alerts are unchanged since the posts' changes of them were decided.
   */
  readonly checkCtes: Fragment;
  /** The query of `numbered`: the posts to write, each with the number of messages up to it in its conversation. */
  readonly numberedQuery: Fragment;
  /** The number of messages and the number of revs that the flush adds to a conversation. */
  readonly messageAndRevCounts: Fragment;
  /** The number of revs that the flush adds to a conversation up to and including this post. */
  readonly revOffset: Fragment;
  /** Whether a post becomes a message. */
  readonly becomesMessage: Fragment;
  /** The seq that the answer to a post contains. */
  readonly answeredSeq: Fragment;
  /** The log epoch that the answer to a post contains. */
  readonly answeredEpoch: Fragment;
  /** CTEs after `advanced`, which write the edits of messages, the events of these edits, and the rows of alerts. */
  readonly writeCtes: Fragment;
  /** Columns of `AlertWriteResult`. */
  readonly resultColumns: Fragment;
  /** The `case` branch for a post whose alert changed after the post's change of it was decided. */
  readonly conflictCase: Fragment;
}

/** The SQL fragments for a flush whose posts change no alert: each new post becomes a message, and takes one rev. */
export function noAlertFragments(sql: Sql, candidates: Fragment): AlertFragments {
  return {
    plainPostsFirst: sql``,
    checkCtes: sql``,
    numberedQuery: sql`
      select f.*, row_number() over (partition by f.conversation_id order by f.ord) as n from ${candidates} f`,
    messageAndRevCounts: sql`count(*) as n, count(*) as revs`,
    revOffset: sql`n.n`,
    becomesMessage: sql`true`,
    answeredSeq: sql`a.seq0 + n.n`,
    answeredEpoch: sql`a.epoch`,
    writeCtes: sql``,
    resultColumns: sql``,
    conflictCase: sql``,
  };
}

/**
 * Changes alerts in the statement that writes the messages: the alert's row, the edit of its message and the new
 * message are written together or not at all.
 *
 * The statement writes a change only if the row of the alert is still the one that the decision was made from. It locks
 * the row after the head, so it compares the newest version, whatever the snapshot shows. It also locks the message to
 * edit, which a client may have deleted meanwhile. If another node inserted the row after the snapshot, the insert
 * violates the primary key, and the flush is retried. The statement compares `seq` besides `version`, since the
 * versions of a row that was removed and created again start at 1.
 *
 * An edit takes the rev before the rev of its post's new message. If several posts of one flush change the same alert,
 * only the first is written. The others were decided from a row that has changed since.
 *
 * `candidates` is the CTE of the posts that may be written.
 */
export function alertFragments(
  sql: Sql,
  posts: readonly { readonly alert?: AlertWrite }[],
  candidates: Fragment,
): AlertFragments {
  const writes = posts.flatMap(({ alert }, index) => (alert === undefined ? [] : [{ ord: index + 1, ...alert }]));
  const isOne = sql`= any(${writes.map(({ ord }) => ord)}::int[])`;
  return {
    plainPostsFirst: sql`i.ord ${isOne},`,
    checkCtes: checkWrites(sql, writes, candidates),
    numberedQuery: sql`
      select f.*, sum(f.posts) over flush as n, sum(f.posts + f.edits) over flush as revs
      from (
        select c.*, coalesce(w.posts, 1) as posts, coalesce(w.edits, 0) as edits, w.kept_seq
        from ${candidates} c left join alert_write w on w.ord = c.ord
        where w.ord is not null or not c.ord ${isOne}
      ) f
      window flush as (partition by f.conversation_id order by f.ord)`,
    messageAndRevCounts: sql`sum(posts) as n, sum(posts + edits) as revs`,
    revOffset: sql`n.revs`,
    becomesMessage: sql`n.posts = 1`,
    answeredSeq: sql`coalesce(n.kept_seq, a.seq0 + n.n)`,
    answeredEpoch: sql`
      case when n.kept_seq is null then a.epoch else coalesce((
        select shown.epoch from message shown where shown.conversation_id = n.conversation_id and shown.seq = n.kept_seq), 0) end`,
    writeCtes: writeAlerts(sql),
    resultColumns: sql`
      case when n.posts = 1 then a.seq0 + n.n end as posted_seq, n.edits = 1 as edited, a.wants_events,`,
    conflictCase: sql`when m.ord is not null and k.ord is null and n.ord is null and i.ord ${isOne} then 'conflict'`,
  };
}

/**
 * The CTEs up to `alert_write`: the changes of alerts whose row is unchanged since the decision, and whose message to
 * edit still exists.
 */
function checkWrites(sql: Sql, writes: readonly (AlertWrite & { ord: number })[], candidates: Fragment): Fragment {
  const oneOrZero = (isTrue: boolean): number => (isTrue ? 1 : 0);
  return sql`
    alert_post as (
      select distinct on (c.conversation_id, u.source, u.alert_key) c.conversation_id, u.*
      from unnest(
        ${writes.map((w) => w.ord)}::int[], ${writes.map((w) => w.source)}::text[], ${writes.map((w) => w.key)}::text[],
        ${writes.map((w) => w.decidedFrom?.version ?? null)}::bigint[], ${writes.map((w) => w.decidedFrom?.seq ?? null)}::bigint[],
        ${writes.map((w) => w.editedText)}::text[], ${writes.map((w) => w.editedCardsJson)}::text[], ${writes.map((w) => oneOrZero(w.newMessage !== 'none'))}::int[],
        ${writes.map((w) => oneOrZero(w.newMessage === 'shows-alert'))}::int[], ${writes.map((w) => w.state?.state ?? null)}::text[],
        ${writes.map((w) => w.state?.since.toISOString() ?? null)}::timestamptz[],
        ${writes.map((w) => (w.state === null ? null : JSON.stringify(w.state.senderAlerts)))}::text[]
      ) as u(ord, source, alert_key, version, row_seq, edited_text, edited_cards, posts, shows_alert, state, since, sender_alerts)
      join ${candidates} c on c.ord = u.ord
      order by c.conversation_id, u.source, u.alert_key, u.ord
    ), alert_row as (
      select a.conversation_id, a.source, a.key, a.version, a.seq
      from alert a join alert_post p on p.conversation_id = a.conversation_id and p.source = a.source and p.alert_key = a.key
      order by a.conversation_id, a.source, a.key for no key update of a
    ), alert_message as (
      select m.conversation_id, m.seq, m.text
      from message m join alert_post p on p.conversation_id = m.conversation_id and p.row_seq = m.seq
      join head h on h.conversation_id = m.conversation_id and h.first_seq <= m.seq
      where p.edited_text is not null and m.deleted_at is null
      order by m.conversation_id, m.seq for no key update of m
    ), alert_write as (
      select p.*, (m.text is distinct from p.edited_text)::int as edits, case when p.shows_alert = 0 then p.row_seq end as kept_seq
      from alert_post p
      left join alert_row a on a.conversation_id = p.conversation_id and a.source = p.source and a.key = p.alert_key
      left join alert_message m on m.conversation_id = p.conversation_id and m.seq = p.row_seq
      where a.version is not distinct from p.version and a.seq is not distinct from p.row_seq
        and (p.edited_text is null or m.seq is not null)
    ),`;
}

const writeAlerts = (sql: Sql): Fragment => sql`
  , edited as (
    update message m set text = w.edited_text, cards = w.edited_cards::jsonb, edited_at = clock_timestamp(), rev = a.rev0 + n.revs - n.posts
    from alert_write w join numbered n on n.ord = w.ord join advanced a on a.conversation_id = n.conversation_id
    where w.edits = 1 and m.conversation_id = w.conversation_id and m.seq = w.row_seq
    returning m.conversation_id, m.seq, m.rev, m.edited_at, n.sender_id, n.hops, a.seq0 + n.n - n.posts as after_seq,
      a.epoch, a.wants_events
  ), edit_event as (
    insert into hook_event (conversation_id, rev, epoch, after_seq, seq, kind, actor_id, hops, at)
    select e.conversation_id, e.rev, e.epoch, e.after_seq, e.seq, 'message.updated', e.sender_id, e.hops, e.edited_at
    from edited e where e.wants_events
  ), alert_updated as (
    update alert t set seq = coalesce(n.kept_seq, a.seq0 + n.n), state = w.state, since = w.since,
      alerts = w.sender_alerts::jsonb, version = t.version + 1, updated_at = clock_timestamp(),
      posted_at = case when n.posts = 1 then clock_timestamp() else t.posted_at end
    from alert_write w join numbered n on n.ord = w.ord left join advanced a on a.conversation_id = n.conversation_id
    where w.version is not null and w.state is not null
      and t.conversation_id = w.conversation_id and t.source = w.source and t.key = w.alert_key
  ), alert_inserted as (
    insert into alert (conversation_id, source, key, seq, state, since, alerts)
    select w.conversation_id, w.source, w.alert_key, a.seq0 + n.n, w.state, w.since, w.sender_alerts::jsonb
    from alert_write w join numbered n on n.ord = w.ord join advanced a on a.conversation_id = n.conversation_id
    where w.version is null
  )`;
