import type { AccountId, ConversationId, Rev, Seq } from '../../model/ids.ts';
import { mentionsOf } from '../../model/mentions.ts';
import type { Pool } from '../db/pool.ts';
import type { Sql, Transaction } from '../db/connection.ts';

/**
 * The search index covers at most this many characters of a message: as many as `limits.text-length` allows by default.
 */
const MAX_INDEXED_CHARACTERS = 40_000;
/**
 * The most messages and bytes of one transaction, which bound how long it takes, and how long it can block other
 * transactions.
 */
const MAX_BATCH_MESSAGES = 200;
const MAX_BATCH_BYTES = 512 * 1024;

/**
 * The result of a call of `indexNext`. `acquired` is false if another node indexes the conversation. Else: the number
 * of of indexed messages, and whether more are left.
 */
type IndexingRun =
  { readonly acquired: false } | { readonly acquired: true; readonly messages: number; readonly more: boolean };

/**
 * Finds conversations with changes that are not indexed yet, in the order of their ids, beginning after `afterId`.
 */
export async function findUnindexedConversations(sql: Sql, afterId: number, limit: number): Promise<ConversationId[]> {
  const rows = await sql<{ id: ConversationId }[]>`
    select h.conversation_id as id
    from conversation_head h left join search_index_progress d on d.conversation_id = h.conversation_id
    where h.conversation_id > ${afterId} and h.last_rev > coalesce(d.indexed_rev, 0)
    order by h.conversation_id limit ${limit}`;
  return rows.map(({ id }) => id);
}

/**
 * Indexes the next changes of a conversation, and stores the position in the same transaction: a process that dies
 * midway leaves nothing half done. If another node indexes the same conversation, it returns without waiting.
 */
export async function indexNext(pool: Pool, conversationId: ConversationId): Promise<IndexingRun> {
  const firstResult = await pool.transaction((tx) => indexBatch(tx, conversationId));
  if (firstResult.acquired) return firstResult;
  // Either there is no progress row yet, or another node holds it locked. The statement inserts only a missing row.
  const [made] = await pool.run(
    (sql) => sql`
      insert into search_index_progress (conversation_id) select conversation_id from conversation_head
      where conversation_id = ${conversationId}
      on conflict do nothing returning conversation_id`,
  );
  return made === undefined ? firstResult : pool.transaction((tx) => indexBatch(tx, conversationId));
}

async function indexBatch(tx: Transaction, conversationId: ConversationId): Promise<IndexingRun> {
  // An asynchronous commit: if a crash of the machine undoes it, the changes are indexed once more.
  const [progress] = await tx<{ rev: Rev; head: Rev }[]>`
    select d.indexed_rev as rev,
      (select h.last_rev from conversation_head h where h.conversation_id = d.conversation_id) as head
    from search_index_progress d
    where d.conversation_id = ${conversationId} and set_config('synchronous_commit', 'off', true) = 'off'
    for update of d skip locked`;
  if (progress === undefined) return { acquired: false };
  const { rows, more } = await readBatch(tx, conversationId, progress.rev);
  // `head` was read before the messages, so no change up to it is missing. Later commits have higher revs, and are left
  // to the next call.
  const upTo = more ? rows.at(-1)!.rev : Math.max(progress.head, rows.at(-1)?.rev ?? 0);
  if (upTo <= progress.rev) return { acquired: true, messages: 0, more: false };
  await writeSearchIndex(tx, conversationId, rows);
  await writeMentions(tx, conversationId, rows);
  await tx`update search_index_progress set indexed_rev = ${upTo} where conversation_id = ${conversationId}`;
  return { acquired: true, messages: rows.length, more };
}

interface UnindexedRow {
  readonly seq: Seq;
  readonly rev: Rev;
  readonly senderId: AccountId;
  /** The message was edited or deleted, so the index may have an earlier version of it. */
  readonly editedOrDeleted: boolean;
  readonly deleted: boolean;
  /** Null: the text has no `@`, so it mentions nobody. */
  readonly text: string | null;
}

async function readBatch(
  tx: Transaction,
  conversationId: ConversationId,
  after: Rev,
): Promise<{ rows: UnindexedRow[]; more: boolean }> {
  const rows = await tx<(UnindexedRow & { before: number })[]>`
    select m.seq, m.rev, m.sender_id as "senderId", m.edited_at is not null or m.deleted_at is not null as "editedOrDeleted",
      m.deleted_at is not null as deleted, case when position('@' in m.text) > 0 then m.text end as text,
      coalesce(sum(octet_length(m.text)) over (order by m.rev rows between unbounded preceding and 1 preceding), 0)
        as before
    from (
      select * from message where conversation_id = ${conversationId} and rev > ${after}
        and seq >= (select first_seq from conversation_head where conversation_id = ${conversationId})
      order by rev limit ${MAX_BATCH_MESSAGES + 1}
    ) m
    order by m.rev`;
  const fitting = rows.filter((row, index) => index < MAX_BATCH_MESSAGES && row.before < MAX_BATCH_BYTES);
  return { rows: fitting, more: fitting.length < rows.length };
}

async function writeSearchIndex(tx: Transaction, id: ConversationId, rows: readonly UnindexedRow[]): Promise<void> {
  const written = rows.filter(({ deleted }) => !deleted).map(({ seq }) => seq);
  const deleted = rows.filter((row) => row.deleted).map(({ seq }) => seq);
  if (written.length > 0) {
    await tx`
      insert into search_index (conversation_id, seq, sent_at, document)
      select conversation_id, seq, sent_at, to_tsvector('simple', left(text, ${MAX_INDEXED_CHARACTERS}::int))
      from message where conversation_id = ${id} and seq = any(${written}::bigint[]) and deleted_at is null
      on conflict (conversation_id, seq) do update set document = excluded.document`;
  }
  if (deleted.length > 0) {
    await tx`delete from search_index where conversation_id = ${id} and seq = any(${deleted}::bigint[])`;
  }
}

async function writeMentions(tx: Transaction, id: ConversationId, rows: readonly UnindexedRow[]): Promise<void> {
  const changed = rows.filter((row) => row.editedOrDeleted).map(({ seq }) => seq);
  if (changed.length > 0) {
    await tx`delete from mention where conversation_id = ${id} and seq = any(${changed}::bigint[])`;
  }
  const mentions = rows.flatMap(({ seq, senderId, text }) =>
    mentionsOf(text ?? '').map((nick) => ({ seq, senderId, nick })),
  );
  if (mentions.length === 0) return;
  await tx`
    insert into mention (account_id, conversation_id, seq)
    select a.id, ${id}, f.seq
    from unnest(
      ${mentions.map(({ seq }) => seq)}::bigint[], ${mentions.map(({ senderId }) => senderId)}::bigint[],
      ${mentions.map(({ nick }) => nick)}::text[]
    ) as f(seq, sender_id, nick)
    join account a on a.nick = f.nick and a.id <> f.sender_id
    join membership m on m.conversation_id = ${id} and m.account_id = a.id
    on conflict do nothing`;
}
