import type { AccountId, ConversationId } from '../../model/ids.ts';
import type { Sql } from '../db/connection.ts';

/** The sender of a file. */
export interface Uploader {
  readonly accountId: AccountId;
  /** The group whose webhook sends the file; null: a person or a bot does. */
  readonly conversationId: ConversationId | null;
}

/**
 * The account whose quota an upload counts against: the group's owner for a group's webhook, the bot's owner for a bot,
 * else the account itself. Otherwise one person would have a quota for each of their groups and bots.
 */
export async function findUploadOwner(sql: Sql, { accountId, conversationId }: Uploader): Promise<AccountId> {
  const [row] = await sql<{ id: AccountId }[]>`
    select coalesce(
      (select m.account_id from membership m where m.conversation_id = ${conversationId} and m.role = 'owner'),
      (select a.owner_id from account a where a.id = ${accountId}),
      ${accountId}::bigint) as id`;
  return row!.id;
}
