import type { AccountId, ConversationId, LogEpoch, Rev, Seq, SessionOrTokenId } from '../../model/ids.ts';
import type { Sql } from '../db/connection.ts';
import type { MemberKey } from './members.ts';
import type { FoundSession } from '../accounts/sessions.ts';
import { epochBoundaryColumns, type EpochBoundary } from '../messages/log-epoch.ts';

/** A conversation and the rev of its newest change. */
interface ConversationLastRev {
  readonly conversationId: ConversationId;
  readonly rev: Rev;
}

/**
 * A conversation with the rev of its newest change, its first seq, and the rev after which the current log epoch began.
 */
export interface HeadForSubscriptions extends ConversationLastRev {
  /** The seq of the first message that no retention rule removed. */
  readonly firstSeq: Seq;
  /**
   * The rev after which the current log epoch began. A client that knows the previous epoch drops all changes with a
   * rev greater than this one.
   */
  readonly epochRev: Rev;
}

/** The conversations of an account, with the current and the previous epoch of the log at the time of the read. */
interface AccountHeadsAndEpochs {
  readonly heads: readonly HeadForSubscriptions[];
  readonly currentEpoch: LogEpoch;
  readonly previousEpoch: LogEpoch;
}

/** A membership, with the rev of the conversation's newest change and the rev of the notice that the account joined. */
export interface MembershipWithRevs extends MemberKey {
  readonly rev: Rev;
  /** Null: no notice reports that the account joined. */
  readonly joinNoticeRev: Rev | null;
}

/** The conversations of an account, at most `limit`, the lowest ids first. */
export async function listHeadsOfAccount(
  sql: Sql,
  accountId: AccountId,
  limit: number,
): Promise<AccountHeadsAndEpochs> {
  // One statement, so that epochs and heads come from one snapshot. For an account without memberships it returns one
  // row with only the epochs.
  const rows = await sql<(HeadForSubscriptions & EpochBoundary & { conversationId: ConversationId | null })[]>`
    select h.conversation_id as "conversationId", h.last_rev as rev, h.first_seq as "firstSeq", ${epochBoundaryColumns(sql)}
    from (values (${accountId}::bigint)) as who (account_id)
    left join membership m on m.account_id = who.account_id
    left join conversation_head h on h.conversation_id = m.conversation_id
    order by h.conversation_id limit ${limit}`;
  const { currentEpoch, previousEpoch } = rows[0]!;
  return { heads: rows.filter(({ conversationId }) => conversationId !== null), currentEpoch, previousEpoch };
}

/** Of the known conversations, those whose last rev in the database differs from the known one, with the last rev. */
export async function listChangedHeads(
  sql: Sql,
  known: readonly ConversationLastRev[],
): Promise<readonly ConversationLastRev[]> {
  return sql<ConversationLastRev[]>`
    select h.conversation_id as "conversationId", h.last_rev as rev
    from unnest(${known.map((each) => each.conversationId)}::bigint[], ${known.map((each) => each.rev)}::bigint[])
      as k (conversation_id, rev)
    join conversation_head h on h.conversation_id = k.conversation_id and h.last_rev <> k.rev`;
}

/** The memberships among these keys that exist. */
export async function findMemberships(sql: Sql, keys: readonly MemberKey[]): Promise<readonly MembershipWithRevs[]> {
  return sql<MembershipWithRevs[]>`
    select m.conversation_id as "conversationId", m.account_id as "accountId", h.last_rev as rev, (
      -- A member since the creation of the group has no notice of joining: the notice of the creation counts.
      select coalesce(max(n.rev) filter (where n.kind = 'joined'), max(n.rev)) from notice n
      where n.conversation_id = m.conversation_id
        and (n.kind = 'created' or n.kind = 'joined' and n.details->'account' = to_jsonb(m.account_id))
    ) as "joinNoticeRev"
    from unnest(${keys.map((key) => key.conversationId)}::bigint[], ${keys.map((key) => key.accountId)}::bigint[])
      as k (conversation_id, account_id)
    join membership m on m.conversation_id = k.conversation_id and m.account_id = k.account_id
    join conversation_head h on h.conversation_id = m.conversation_id`;
}

/** The keys of all memberships of these accounts. */
export async function listMemberships(sql: Sql, accounts: readonly AccountId[]): Promise<readonly MemberKey[]> {
  return sql<MemberKey[]>`
    select conversation_id as "conversationId", account_id as "accountId"
    from membership where account_id = any(${[...accounts]}::bigint[])`;
}

/** The sessions among these that are still valid, with their accounts. */
export async function findValidSessions(sql: Sql, ids: readonly SessionOrTokenId[]): Promise<readonly FoundSession[]> {
  return sql<FoundSession[]>`
    select s.id, a.id as "accountId", a.kind as "accountKind", a.role, a.nick, a.name, s.scopes,
      s.expires_at as "expiresAt"
    from session s join account a on a.id = s.account_id
    where s.id = any(${[...ids]}::bigint[]) and a.deactivated_at is null
      and (s.expires_at is null or s.expires_at > now())`;
}
