import type { AccountId, ConversationId } from '../../model/ids.ts';
import type { GroupRole } from '../../model/roles.ts';
import type { Sql, Transaction } from '../db/connection.ts';
import type { MemberKey } from './members.ts';

/** A member of a group, or a bot that the member owns in the same group. */
export interface MemberOrOwnedBot {
  readonly id: AccountId;
  readonly nick: string;
  readonly role: GroupRole;
  /** The account was owner or admin, and the group's integration token has not been replaced since then. */
  readonly knowsTokenAsFormerAdmin: boolean;
}

/**
 * A member with the bots that it owns in the same group. The member comes first, and is left out if it has no
 * membership.
 */
export async function listMemberWithBots(sql: Sql | Transaction, key: MemberKey): Promise<MemberOrOwnedBot[]> {
  return sql<MemberOrOwnedBot[]>`
    select a.id, a.nick, m.role, m.knows_token as "knowsTokenAsFormerAdmin"
    from account a join membership m on m.account_id = a.id and m.conversation_id = ${key.conversationId}
    where a.id = ${key.accountId} or a.owner_id = ${key.accountId}
    order by a.id <> ${key.accountId}, a.id`;
}

/**
 * Records that an account was removed from a group: no current invitation of the group lets the account or its bots
 * join again.
 */
export async function insertRemoval(tx: Transaction, { conversationId, accountId }: MemberKey): Promise<void> {
  await tx`
    insert into group_removal (conversation_id, account_id, last_invite_id)
    select ${conversationId}, ${accountId}, coalesce(max(id), 0) from group_invite
    where conversation_id = ${conversationId}
    on conflict (conversation_id, account_id)
      do update set last_invite_id = greatest(group_removal.last_invite_id, excluded.last_invite_id)`;
}

/** Clears the mark of former owners and admins that know the group's integration token: the token has been replaced. */
export async function clearKnowsTokenMarks(tx: Transaction, conversationId: ConversationId): Promise<void> {
  await tx`update membership set knows_token = false where conversation_id = ${conversationId} and knows_token`;
}

/** The ids of a group's reverse webhooks, at most `limits.hooks-per-group`. */
export async function listHookIds(tx: Transaction, conversationId: ConversationId): Promise<number[]> {
  const rows = await tx<{ id: number }[]>`
    select id from reverse_hook where conversation_id = ${conversationId} and removed_at is null order by id`;
  return rows.map(({ id }) => id);
}
