import type { AccountId, ConversationId, Seq } from '../../model/ids.ts';
import type { Sql, Transaction } from '../db/connection.ts';

/** Whether a file can be attached (`free`), or why it cannot. Files of other accounts are `unknown`. */
export type AttachmentStatus = 'free' | 'unknown' | 'incomplete' | 'attached';

/** The status of an account's files, in the order of the ids. */
export async function listAttachmentStatuses(
  sql: Sql,
  accountId: AccountId,
  fileIds: readonly string[],
): Promise<readonly AttachmentStatus[]> {
  const rows = await sql<{ id: string; status: AttachmentStatus }[]>`
    select id, case when state = 'uploading' then 'incomplete' when state in ('lost', 'removed') then 'unknown'
      when seq is null then 'free' else 'attached' end as status
    from file where id = any(${[...fileIds]}::text[]) and owner_id = ${accountId}`;
  const statusById = new Map(rows.map((row) => [row.id, row.status]));
  return fileIds.map((id) => statusById.get(id) ?? 'unknown');
}

/**
 * Marks the files of a deleted message as removed: from the commit on nobody can read them. The sweeper deletes them
 * from the store later; until then they count as used space. The caller holds the conversation's lock
 * (`lockHeadAndReadMessage`). The function locks the files after the conversation, as the statement that attaches files
 * does.
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
