import type { AccountId, ConversationId } from '../model/ids.ts';
import type { GroupRole } from '../model/roles.ts';
import type { Sql, Transaction } from './connection.ts';

/** A membership by its key. */
export interface MemberKey {
  readonly conversationId: ConversationId;
  readonly accountId: AccountId;
}

/** What the account may do in the group; null when it is no member. */
export async function findGroupRole(sql: Sql | Transaction, key: MemberKey): Promise<GroupRole | null> {
  const [row] = await sql<{ role: GroupRole }[]>`
    select role from membership where conversation_id = ${key.conversationId} and account_id = ${key.accountId}`;
  return row?.role ?? null;
}

/**
 * Makes the account a member. Who is one already gets the role, or keeps the own one where none is given. Returns the
 * role now and whether the member is new.
 */
export async function putMember(
  tx: Transaction,
  key: MemberKey,
  role: GroupRole | null,
): Promise<{ role: GroupRole; added: boolean }> {
  const { conversationId, accountId } = key;
  // An inserted row has no xmax: one statement, so that no removal comes between.
  const [row] = await tx<{ role: GroupRole; added: boolean }[]>`
    insert into membership as m (conversation_id, account_id, role)
    values (${conversationId}, ${accountId}, ${role ?? 'member'})
    on conflict (conversation_id, account_id) do update set role = coalesce(${role}::text, m.role)
    returning m.role, m.xmax = 0 as added`;
  return row!;
}

/** Ends a membership; false when there was none. */
export async function deleteMember(tx: Sql | Transaction, key: MemberKey): Promise<boolean> {
  const rows = await tx`
    delete from membership where conversation_id = ${key.conversationId} and account_id = ${key.accountId}
    returning account_id`;
  return rows.length > 0;
}
