import type { AccountId, ConversationId, Seq } from '../../model/ids.ts';
import type { Sql, Transaction } from '../db/connection.ts';

/** Why a file cannot be attached; `free`: it can. Of what is not the account's own only that there is no such file. */
export type AttachmentStatus = 'free' | 'unknown' | 'incomplete' | 'attached';

/** How an account's files stand, in the order of the ids. */
export async function listAttachmentStatuses(
  sql: Sql,
  accountId: AccountId,
  ids: readonly string[],
): Promise<readonly AttachmentStatus[]> {
  const rows = await sql<{ id: string; status: AttachmentStatus }[]>`
    select id, case when state = 'uploading' then 'incomplete' when state in ('lost', 'removed') then 'unknown'
      when seq is null then 'free' else 'attached' end as status
    from file where id = any(${[...ids]}::text[]) and owner_id = ${accountId}`;
  const known = new Map(rows.map((row) => [row.id, row.status]));
  return ids.map((id) => known.get(id) ?? 'unknown');
}

/**
 * Gives up the files of a message that is deleted: nobody may read them from the commit on, and the sweeper takes them
 * out of the store; until then they take their room. The conversation is locked (`lockHeadAndReadMessage`), and so come the files
 * behind it, as in the statement that attaches them.
 */
export async function markMessageFilesRemoved(
  tx: Transaction,
  { conversationId, seq }: { conversationId: ConversationId; seq: Seq },
): Promise<void> {
  await tx`
    with attached as (
      select id from file where conversation_id = ${conversationId} and seq = ${seq} and state in ('stored', 'lost')
      order by id for update
    )
    update file f set state = 'removed', updated_at = clock_timestamp() from attached a where f.id = a.id`;
}
