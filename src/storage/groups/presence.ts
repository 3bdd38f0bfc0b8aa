import type { AccountId, ConversationId } from '../../model/ids.ts';
import type { Sql } from '../db/connection.ts';

/** The names by which other accounts know an account. */
export interface AccountSummary {
  readonly id: AccountId;
  readonly nick: string;
  readonly name: string;
}

/** A person, and a conversation whose members see the person's presence. */
interface PresenceMembership extends AccountSummary {
  readonly conversationId: ConversationId;
}

/**
 * The memberships of these accounts in these conversations, without conversations of more than `maxMembers` members.
 */
export async function listPresenceMemberships(
  sql: Sql,
  asked: { accounts: readonly AccountId[]; conversations: readonly ConversationId[]; maxMembers: number },
): Promise<readonly PresenceMembership[]> {
  return sql<PresenceMembership[]>`
    select a.id, a.nick, a.name, m.conversation_id as "conversationId"
    from account a join membership m on m.account_id = a.id
    where a.id = any(${[...asked.accounts]}::bigint[]) and m.conversation_id = any(${[...asked.conversations]}::bigint[])
      and (select count(*) from (
        select from membership o where o.conversation_id = m.conversation_id limit ${asked.maxMembers + 1}
      ) others) <= ${asked.maxMembers}`;
}

/** Null: there is no account with this id. */
export async function findAccountSummary(sql: Sql, id: AccountId): Promise<AccountSummary | null> {
  const [row] = await sql<AccountSummary[]>`select id, nick, name from account where id = ${id}`;
  return row ?? null;
}

/** The accounts among these that are members of the conversation, sorted by nick, at most `limit`. */
export async function listMembersOfConversationAmong(
  sql: Sql,
  asked: { conversationId: ConversationId; accounts: readonly AccountId[]; limit: number },
): Promise<readonly AccountSummary[]> {
  return sql<AccountSummary[]>`
    select a.id, a.nick, a.name
    from membership m join account a on a.id = m.account_id
    where m.conversation_id = ${asked.conversationId} and m.account_id = any(${[...asked.accounts]}::bigint[])
    order by a.nick limit ${asked.limit}`;
}
