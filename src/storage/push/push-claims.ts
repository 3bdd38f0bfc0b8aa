import type { DeviceKind, ConversationNotificationLevel } from '../../model/device.ts';
import type { AccountId, ConversationId, DeviceId, Seq } from '../../model/ids.ts';
import type { Fragment, Sql } from '../db/connection.ts';

/** A pending push that a node claimed in order to send it. Every later claim has a higher `claimNumber`. */
export interface PushClaim {
  readonly deviceId: DeviceId;
  readonly conversationId: ConversationId;
  readonly claimNumber: number;
  /** The number of failed attempts to send the push. */
  readonly attempts: number;
  readonly firstSeq: Seq;
  readonly lastSeq: Seq;
  /** The time of the claim by the database's clock, in the database's format. */
  readonly claimedAt: string;
}

/** The recipient of a pending push at the time of its claim. */
export interface PushRecipient {
  readonly tokenSealed: string;
  readonly app: string | null;
  readonly accountId: AccountId;
  readonly nick: string;
  readonly level: ConversationNotificationLevel;
  readonly readSeq: Seq;
  /** The number of unread messages in all conversations of the account. */
  readonly unreadInAllConversations: number;
  /** Whether the account has blocked anybody. */
  readonly hasBlocked: boolean;
}

/** A claim with its recipient, if it still has one. */
export type ClaimedPush = PushClaim & (PushRecipient | { readonly accountId: null });

/**
 * The seq up to which the member `o` (a row of `membership`) gets no push: messages that the member has read, and
 * messages that were removed unread.
 */
const readOrRemovedSeq = (sql: Sql): Fragment => sql`
  greatest(o.read_seq, (select h.first_seq - 1 from conversation_head h where h.conversation_id = o.conversation_id))`;

/**
 * Claims up to `limit` due pushes of a vendor for `claimMs`, the longest due first. A push has no recipient if
 * - its messages were read,
 * - the conversation was muted or left,
 * - the account or the session has ended, or
 * - the device is gone.
 */
export async function claimDuePushes(
  sql: Sql,
  kind: DeviceKind,
  { limit, forMs: claimMs }: { limit: number; forMs: number },
): Promise<ClaimedPush[]> {
  return sql<ClaimedPush[]>`
    with due as (
      select ctid from push_pending
      -- A subquery runs once. As a condition of each row, the planner expects one row, and sorts all due rows.
      where kind = ${kind} and next_at <= now() and claimed_until <= now()
        and (select set_config('synchronous_commit', 'off', true)) = 'off'
      -- A subquery hides the limit: with it the planner would sort all due rows where it expects few, and plan each time.
      order by next_at limit (select ${limit}::int) for update skip locked
    ), taken as (
      -- By ctid, the place of each locked row: a look-up in the index would cost as much as the rest of the statement.
      update push_pending
      set claim_number = claim_number + 1, claimed_until = now() + ${claimMs} * interval '1 millisecond'
      where ctid = any(array(select ctid from due))
      returning device_id, conversation_id, claim_number, attempts, first_seq, last_seq
    ),
    -- Reads each table once for all rows: reading row by row took twice as long. The ids are arrays: the planner
    -- expects ten elements in them, and uses the index however large the table is.
    of_device as (
      select id, session_id, account_id, token_sealed, app from device where id = any(array(select device_id from taken))
    ), signed_in as (
      select id from session
      where id = any(array(select session_id from of_device)) and (expires_at is null or expires_at > now())
    ), owner as (
      select id, nick from account where id = any(array(select account_id from of_device)) and deactivated_at is null
    ), badge as (
      select o.account_id as id, sum(greatest(h.last_seq - greatest(o.read_seq, h.first_seq - 1), 0))::bigint as unread
      from membership o join conversation_head h on h.conversation_id = o.conversation_id
      where o.account_id = any(array(select account_id from of_device)) group by o.account_id
    ), blocking as (
      select distinct account_id as id from block where account_id = any(array(select account_id from of_device))
    )
    select p.device_id as "deviceId", p.conversation_id as "conversationId", p.claim_number as "claimNumber",
      p.attempts, p.first_seq as "firstSeq", p.last_seq as "lastSeq", now()::text as "claimedAt",
      case when signed_in.id is not null and m.read_seq < p.last_seq and m.level <> 'nothing'
        and (m.muted_until is null or m.muted_until <= now()) then owner.id end as "accountId",
      d.token_sealed as "tokenSealed", d.app, owner.nick, m.level, m.read_seq as "readSeq",
      badge.unread as "unreadInAllConversations", blocking.id is not null as "hasBlocked"
    from taken p
    -- Full joins, though each row on the right has one on the left: PostgreSQL never runs a full join as a nested loop,
    -- which the planner would choose for the few rows that it expects.
    full join of_device d on d.id = p.device_id
    full join signed_in on signed_in.id = d.session_id
    full join owner on owner.id = d.account_id
    full join badge on badge.id = d.account_id
    full join blocking on blocking.id = d.account_id
    -- With offset 0, a look-up for each row: for joins the planner may search by the conversation alone, which it takes
    -- for small.
    left join lateral (
      select ${readOrRemovedSeq(sql)} as read_seq, coalesce(s.level, 'all') as level, s.muted_until
      from membership o
      left join notification_setting s on s.conversation_id = o.conversation_id and s.account_id = o.account_id
      where o.conversation_id = p.conversation_id and o.account_id = d.account_id
      offset 0
    ) m on true`;
}

/**
 * Time in ms until the next unclaimed push of a vendor is due, 0 when one is due; null: no unclaimed push is pending.
 */
export async function msUntilNextDuePush(sql: Sql, kind: DeviceKind): Promise<number | null> {
  const [row] = await sql<{ ms: number }[]>`
    select ceil(extract(epoch from greatest(next_at - now(), interval '0')) * 1000)::bigint as ms
    from push_pending where kind = ${kind} and claimed_until <= now() order by next_at limit 1`;
  return row?.ms ?? null;
}
