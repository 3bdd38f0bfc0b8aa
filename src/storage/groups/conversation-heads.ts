import type { AccountId, ConversationId, LogEpoch, Rev, Seq, SessionOrTokenId } from '../../model/ids.ts';
import type { Sql } from '../db/connection.ts';
import type { MemberKey } from './members.ts';
import type { FoundSession } from '../accounts/sessions.ts';
import { epochBoundaryColumns, type EpochBoundary } from '../messages/log-epoch.ts';

/** A conversation and its newest change. */
interface ConversationLastRev {
  readonly conversationId: ConversationId;
  readonly rev: Rev;
}

/** The same, with where its messages and its newest epoch begin. */
export interface HeadForSubscriptions extends ConversationLastRev {
  /** The first message that was not removed by a retention rule. */
  readonly firstSeq: Seq;
  /** Who knows the epoch before drops what has a greater rev. */
  readonly epochRev: Rev;
}

/** The conversations that an account is in, and the epoch of the log at that moment, with the one before it. */
interface AccountHeadsAndEpochs {
  readonly heads: readonly HeadForSubscriptions[];
  readonly currentEpoch: LogEpoch;
  readonly previousEpoch: LogEpoch;
}

/** A membership, with the newest change of the conversation and the one that the account joined with. */
export interface MembershipWithRevs extends MemberKey {
  readonly rev: Rev;
  /** Null: nothing tells of it. */
  readonly joinNoticeRev: Rev | null;
}

/** The conversations that an account is in, at most `limit`, the lowest numbers first. */
export async function listHeadsOfAccount(
  sql: Sql,
  accountId: AccountId,
  limit: number,
): Promise<AccountHeadsAndEpochs> {
  // One statement, so that epoch and heads are of one moment. Without a membership it is one row of the epoch.
  const rows = await sql<(HeadForSubscriptions & EpochBoundary & { conversationId: ConversationId | null })[]>`
    select h.conversation_id as "conversationId", h.last_rev as rev, h.first_seq as "firstSeq", ${epochBoundaryColumns(sql)}
    from (values (${accountId}::bigint)) as who (account_id)
    left join membership m on m.account_id = who.account_id
    left join conversation_head h on h.conversation_id = m.conversation_id
    order by h.conversation_id limit ${limit}`;
  const { currentEpoch, previousEpoch } = rows[0]!;
  return { heads: rows.filter(({ conversationId }) => conversationId !== null), currentEpoch, previousEpoch };
}

/** Those of these conversations whose newest change is another than the one given. */
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

/** Those of these that are memberships. */
export async function findMemberships(sql: Sql, keys: readonly MemberKey[]): Promise<readonly MembershipWithRevs[]> {
  return sql<MembershipWithRevs[]>`
    select m.conversation_id as "conversationId", m.account_id as "accountId", h.last_rev as rev, (
      -- Who was there from the beginning has not joined.
      select coalesce(max(n.rev) filter (where n.kind = 'joined'), max(n.rev)) from notice n
      where n.conversation_id = m.conversation_id
        and (n.kind = 'created' or n.kind = 'joined' and n.details->'account' = to_jsonb(m.account_id))
    ) as "joinNoticeRev"
    from unnest(${keys.map((key) => key.conversationId)}::bigint[], ${keys.map((key) => key.accountId)}::bigint[])
      as k (conversation_id, account_id)
    join membership m on m.conversation_id = k.conversation_id and m.account_id = k.account_id
    join conversation_head h on h.conversation_id = m.conversation_id`;
}

/** Where these accounts are members, without more. */
export async function listMemberships(sql: Sql, accounts: readonly AccountId[]): Promise<readonly MemberKey[]> {
  return sql<MemberKey[]>`
    select conversation_id as "conversationId", account_id as "accountId"
    from membership where account_id = any(${[...accounts]}::bigint[])`;
}

/** Those of these sessions that still hold, with whose they are now. */
export async function findValidSessions(sql: Sql, ids: readonly SessionOrTokenId[]): Promise<readonly FoundSession[]> {
  return sql<FoundSession[]>`
    select s.id, a.id as "accountId", a.kind as "accountKind", a.role, a.nick, a.name, s.scopes,
      s.expires_at as "expiresAt"
    from session s join account a on a.id = s.account_id
    where s.id = any(${[...ids]}::bigint[]) and a.deactivated_at is null
      and (s.expires_at is null or s.expires_at > now())`;
}
