import type { AccountId, ConversationId, Seq } from '../../model/ids.ts';
import type { GroupRole } from '../../model/roles.ts';
import type { Sql, Transaction } from '../db/connection.ts';

/** The key of a membership. */
export interface MemberKey {
  readonly conversationId: ConversationId;
  readonly accountId: AccountId;
}

/** A conversation and an account's role in it; `role` null: the account is no member. */
export interface ConversationAndRole {
  readonly kind: 'group' | 'private';
  readonly archived: boolean;
  readonly role: GroupRole | null;
}

/**
 * The conversation with the account's role; without an account, `role` is null. Resolves with null if there is no such
 * conversation.
 */
export async function findConversationAndRole(
  sql: Sql | Transaction,
  key: { conversationId: ConversationId; accountId: AccountId | null },
): Promise<ConversationAndRole | null> {
  const [row] = await sql<ConversationAndRole[]>`
    select c.kind, h.archived_at is not null as archived, m.role
    from conversation c
    join conversation_head h on h.conversation_id = c.id
    left join membership m on m.conversation_id = c.id and m.account_id = ${key.accountId}
    where c.id = ${key.conversationId}`;
  return row ?? null;
}

/** The account's role in the group; null when it is no member. */
export async function findGroupRole(sql: Sql | Transaction, key: MemberKey): Promise<GroupRole | null> {
  const [row] = await sql<{ role: GroupRole }[]>`
    select role from membership where conversation_id = ${key.conversationId} and account_id = ${key.accountId}`;
  return row?.role ?? null;
}

/** Like `findGroupRole`, and the role cannot change until the transaction ends. */
export async function lockGroupRole(tx: Transaction, key: MemberKey): Promise<GroupRole | null> {
  const [row] = await tx<{ role: GroupRole }[]>`
    select role from membership where conversation_id = ${key.conversationId} and account_id = ${key.accountId} for share`;
  return row?.role ?? null;
}

/**
 * Makes an account a member, with everything up to `readSeq` read. Rejects if it is a member already or would be a
 * second owner; the caller holds the head's lock and has excluded both.
 */
export async function insertMember(
  tx: Transaction,
  member: MemberKey & {
    readonly role: GroupRole;
    readonly readSeq: Seq | 0;
    /** Whether the account itself requested the membership. */
    readonly requested: boolean;
  },
): Promise<void> {
  const { conversationId, accountId, role, readSeq, requested } = member;
  await tx`
    insert into membership (conversation_id, account_id, role, read_seq, requested)
    values (${conversationId}, ${accountId}, ${role}, ${readSeq}, ${requested})`;
}

/**
 * Gives a member another role. An owner or admin that becomes an ordinary member is marked as still knowing the
 * integration token. Rejects if the group would have a second owner.
 */
export async function updateRole(tx: Transaction, key: MemberKey, role: GroupRole): Promise<void> {
  await tx`
    update membership set role = ${role},
      knows_token = ${role === 'member'} and (knows_token or role <> 'member')
    where conversation_id = ${key.conversationId} and account_id = ${key.accountId}`;
}

/** The owner of a group; null where it has none. */
export async function findGroupOwner(
  sql: Sql | Transaction,
  conversationId: ConversationId,
): Promise<{ id: AccountId; nick: string } | null> {
  const [row] = await sql<{ id: AccountId; nick: string }[]>`
    select a.id, a.nick from membership m join account a on a.id = m.account_id
    where m.conversation_id = ${conversationId} and m.role = 'owner'`;
  return row ?? null;
}

/** The number of members of a conversation. */
export async function countMembers(sql: Sql | Transaction, conversationId: ConversationId): Promise<number> {
  const [row] = await sql<{ count: number }[]>`
    select count(*) as count from membership where conversation_id = ${conversationId}`;
  return row!.count;
}

/** The number of an account's memberships; an archived group counts only for its owner. */
export interface RequestedAndAddedMembershipCounts {
  /** Conversations that the account itself created, joined or opened, and those that others opened with it. */
  readonly requested: number;
  /** Groups to which others added the account. */
  readonly addedByOthers: number;
}

/**
 * Counts the memberships of an account; null for one that is deactivated, belongs to an integration, or does not exist.
 * Locks the account until the transaction ends, so that no other transaction counts and adds memberships meanwhile. A
 * caller takes this lock after the head's, and locks several accounts in the order of their ids.
 */
export async function lockAndCountMemberships(
  tx: Transaction,
  accountId: AccountId,
): Promise<RequestedAndAddedMembershipCounts | null> {
  const [account] = await tx`
    select from account where id = ${accountId} and deactivated_at is null and kind <> 'webhook' for no key update`;
  if (account === undefined) return null;
  // The count is a separate statement: the one above sees the state from before its wait for the lock.
  const [row] = await tx<RequestedAndAddedMembershipCounts[]>`
    select count(*) filter (where m.requested) as requested, count(*) filter (where not m.requested) as "addedByOthers"
    from membership m join conversation_head h on h.conversation_id = m.conversation_id
    where m.account_id = ${accountId} and (h.archived_at is null or m.role = 'owner')`;
  return row!;
}

/** A person or bot that a request names by nick or id. */
export interface TargetAccount {
  readonly id: AccountId;
  readonly nick: string;
  readonly name: string;
  readonly deactivated: boolean;
}

/** The account with this nick (in lower case) or id; null when there is none, and for the account of an integration. */
export async function findTargetAccount(
  sql: Sql | Transaction,
  nickOrId: string | number,
): Promise<TargetAccount | null> {
  const [row] = await sql<TargetAccount[]>`
    select id, nick, name, deactivated_at is not null as deactivated from account
    where ${typeof nickOrId === 'number' ? sql`id = ${nickOrId}` : sql`nick = ${nickOrId}`} and kind <> 'webhook'`;
  return row ?? null;
}

/** A member in the list of a group. */
interface ListedMember {
  readonly id: AccountId;
  readonly nick: string;
  readonly name: string;
  readonly kind: 'user' | 'bot';
  readonly role: GroupRole;
  readonly joinedAt: Date;
}

const MAX_LISTED_MEMBERS = 1_001;

/** The members of a group, sorted by nick. The page starts after the nick `after`. */
export async function listMembers(
  sql: Sql,
  page: { conversationId: ConversationId; after: string; limit: number },
): Promise<ListedMember[]> {
  return sql<ListedMember[]>`
    select a.id, a.nick, a.name, a.kind, m.role, m.joined_at as "joinedAt"
    from membership m join account a on a.id = m.account_id
    where m.conversation_id = ${page.conversationId} and a.nick > ${page.after}
    order by a.nick limit ${Math.min(page.limit, MAX_LISTED_MEMBERS)}`;
}

/** Deletes a membership; false when the account was no member. */
export async function deleteMember(tx: Sql | Transaction, key: MemberKey): Promise<boolean> {
  const rows = await tx`
    delete from membership where conversation_id = ${key.conversationId} and account_id = ${key.accountId}
    returning account_id`;
  return rows.length > 0;
}
