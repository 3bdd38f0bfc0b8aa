import type { AccountId, ConversationId } from '../../model/ids.ts';
import type { Sql, Transaction } from '../db/connection.ts';

/** An open invitation into a group: it is neither expired nor used up, and its creator may still create one. */
export interface OpenInvite {
  readonly id: number;
  readonly conversationId: ConversationId;
  readonly sealed: string;
  /** The account that created the invitation; null: the administrator's command line did. */
  readonly creatorUnlessCommandLine: { readonly id: AccountId; readonly nick: string; readonly name: string } | null;
  readonly createdAt: Date;
  readonly expiresAt: Date | null;
  /** How many times the invitation can be used; null: without a limit. */
  readonly maxUses: number | null;
  readonly uses: number;
}

interface NewInvite {
  readonly conversationId: ConversationId;
  readonly token: { readonly hash: string; readonly sealed: string };
  readonly creatorUnlessCommandLine: AccountId | null;
  readonly lifetimeS: number | null;
  readonly maxUses: number | null;
}

const MAX_LISTED_INVITES = 1_001;

/**
 * An open invitation is neither expired nor used up, and its creator may still create one. The creator's invitations
 * are deleted when the account leaves the group, but not when it is deactivated.
 */
const isInviteOpenSql = (sql: Sql | Transaction) => sql`
  (i.expires_at is null or i.expires_at > now()) and (i.max_uses is null or i.uses < i.max_uses)
  and (i.created_by is null or exists (
    select from account maker left join membership m
      on m.account_id = maker.id and m.conversation_id = i.conversation_id
    where maker.id = i.created_by and maker.deactivated_at is null
      and (m.role in ('owner', 'admin') or maker.role = 'admin')))`;

const inviteColumns = (sql: Sql | Transaction) => sql`
  i.id, i.conversation_id as "conversationId", i.token_sealed as sealed, i.created_at as "createdAt",
  i.expires_at as "expiresAt", i.max_uses as "maxUses", i.uses,
  case when a.id is not null then json_build_object('id', a.id, 'nick', a.nick, 'name', a.name) end as "creatorUnlessCommandLine"`;

/** Inserts an invitation; returns its id. */
export async function insertInvite(tx: Transaction, invite: NewInvite): Promise<number> {
  const { conversationId, token, creatorUnlessCommandLine, lifetimeS, maxUses } = invite;
  const [row] = await tx<{ id: number }[]>`
    insert into group_invite (conversation_id, token_hash, token_sealed, created_by, expires_at, max_uses)
    values (${conversationId}, ${token.hash}, ${token.sealed}, ${creatorUnlessCommandLine},
      now() + make_interval(secs => ${lifetimeS}), ${maxUses})
    returning id`;
  return row!.id;
}

/**
 * Deletes the invitations of a group that are not open: expired or used up ones, and those whose creator may not create
 * one any more. A deleted invitation looks like one that never existed.
 */
export async function deleteUnusableInvites(tx: Transaction, conversationId: ConversationId): Promise<void> {
  await tx`delete from group_invite i where i.conversation_id = ${conversationId} and not (${isInviteOpenSql(tx)})`;
}

/** The number of open invitations of a group. */
export async function countOpenInvites(tx: Transaction, conversationId: ConversationId): Promise<number> {
  const [row] = await tx<{ count: number }[]>`
    select count(*) as count from group_invite i where i.conversation_id = ${conversationId} and ${isInviteOpenSql(tx)}`;
  return row!.count;
}

/** A page of open invitations of a group, sorted by id, after the id `after`; with `onlyId`, the one with this id. */
export async function listOpenInvites(
  sql: Sql | Transaction,
  asked: { conversationId: ConversationId; after?: number; limit?: number; only?: number },
): Promise<OpenInvite[]> {
  const { conversationId, after = 0, limit = 1, only = null } = asked;
  return sql<OpenInvite[]>`
    select ${inviteColumns(sql)} from group_invite i left join account a on a.id = i.created_by
    where i.conversation_id = ${conversationId} and ${isInviteOpenSql(sql)} and i.id > ${after}
      and (${only}::bigint is null or i.id = ${only}::bigint)
    order by i.id limit ${Math.min(limit, MAX_LISTED_INVITES)}`;
}

/** The open invitation with this token's hash; null: there is no such open invitation. */
export async function findOpenInvite(sql: Sql | Transaction, tokenHash: string): Promise<OpenInvite | null> {
  const [row] = await sql<OpenInvite[]>`
    select ${inviteColumns(sql)} from group_invite i left join account a on a.id = i.created_by
    where i.token_hash = ${tokenHash} and ${isInviteOpenSql(sql)}`;
  return row ?? null;
}

/**
 * Counts a use of an invitation by an account. False: the invitation is not open, or the account (or the owner of a
 * bot) was removed from the group since the invitation was created. One statement: if two calls come at once for the
 * last use, the second waits and then finds no use left.
 */
export async function useInvite(tx: Transaction, id: number, accountId: AccountId): Promise<boolean> {
  const rows = await tx`
    update group_invite i set uses = uses + 1
    where i.id = ${id} and ${isInviteOpenSql(tx)} and not exists (
      select from account a join group_removal r on r.account_id in (a.id, a.owner_id)
      where a.id = ${accountId} and r.conversation_id = i.conversation_id and r.last_invite_id >= i.id)
    returning i.id`;
  return rows.length > 0;
}

/** Revokes an invitation; false when the group has no such open invitation. */
export async function deleteOpenInvite(tx: Transaction, conversationId: ConversationId, id: number): Promise<boolean> {
  const rows = await tx`
    delete from group_invite i where i.id = ${id} and i.conversation_id = ${conversationId} and ${isInviteOpenSql(tx)}
    returning i.id`;
  return rows.length > 0;
}

/** Revokes the invitations of a group that one of the accounts created. Returns how many of them were open. */
export async function deleteInvitesCreatedBy(
  tx: Transaction,
  { conversationId, accountIds }: { conversationId: ConversationId; accountIds: readonly AccountId[] },
): Promise<number> {
  const rows = await tx<{ open: boolean }[]>`
    delete from group_invite i
    where i.conversation_id = ${conversationId} and i.created_by = any(${[...accountIds]}::bigint[])
    returning ${isInviteOpenSql(tx)} as open`;
  return rows.filter(({ open }) => open).length;
}

/** Revokes all invitations of a group. Returns how many of them were open. */
export async function deleteInvitesCountingOpen(tx: Transaction, conversationId: ConversationId): Promise<number> {
  const rows = await tx<{ open: boolean }[]>`
    delete from group_invite i where i.conversation_id = ${conversationId} returning ${isInviteOpenSql(tx)} as open`;
  return rows.filter(({ open }) => open).length;
}

/** The ids of the open invitations of a group, at most `limits.invites-per-group`. */
export async function listOpenInviteIds(tx: Transaction, conversationId: ConversationId): Promise<number[]> {
  const rows = await tx<{ id: number }[]>`
    select i.id from group_invite i where i.conversation_id = ${conversationId} and ${isInviteOpenSql(tx)} order by i.id`;
  return rows.map(({ id }) => id);
}
