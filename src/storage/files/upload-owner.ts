import type { AccountId, ConversationId } from '../../model/ids.ts';
import type { Sql } from '../db/connection.ts';

/** Who brings a file. */
export interface Uploader {
  readonly accountId: AccountId;
  /** The group whose webhook brings it; null: a person or a bot does. */
  readonly conversationId: ConversationId | null;
}

/**
 * The account that an upload counts for: of a group's webhook the group's owner, of a bot the bot's owner, else the
 * account itself. Otherwise one person would have as many places as groups and bots.
 */
export async function findUploadOwner(sql: Sql, { accountId, conversationId }: Uploader): Promise<AccountId> {
  const [row] = await sql<{ id: AccountId }[]>`
    select coalesce(
      (select m.account_id from membership m where m.conversation_id = ${conversationId} and m.role = 'owner'),
      (select a.owner_id from account a where a.id = ${accountId}),
      ${accountId}::bigint) as id`;
  return row!.id;
}
