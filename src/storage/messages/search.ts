import type { AccountId, ConversationId, LogEpoch, MessagePosition, Seq } from '../../model/ids.ts';
import { sqlState } from '../db/database-error.ts';
import type { Sql, Transaction } from '../db/connection.ts';
import type { StoredMessage } from './changes.ts';
import { messageColumns, messageOf, type MessageRow } from './messages.ts';
import type { Pool } from '../db/pool.ts';

/** The words to search for, the conversations to search in, and the page of the result. */
interface SearchRequest {
  /** The query as people type it into a search box: words, "a phrase", or, -not. */
  readonly text: string;
  /** The search covers only conversations of which this account is a member. */
  readonly accountId: AccountId;
  /** Only this conversation; null: all. */
  readonly conversationId: ConversationId | null;
  /** Only messages older than this one; null: from the newest. */
  readonly before: MessagePosition | null;
  readonly limit: number;
  readonly maxBytes: number;
}

export interface SearchPage {
  /** The matching messages, newest first. */
  readonly found: readonly { readonly conversationId: ConversationId; readonly message: StoredMessage }[];
  /** The start of the next page; null: this was the last page. */
  readonly next: MessagePosition | null;
}

/** The statement time-out aborted the search: too many messages match, or only few among very many. */
export class SearchTimeoutError extends Error {
  override readonly name = 'SearchTimeoutError';
}

/**
 * The time-out of the search, which aborts the statement in the database. If only the connection closed, the statement
 * would continue there.
 */
const STATEMENT_TIMEOUT_MS = 3_000;
const QUERY_CANCELED = '57014';

/**
 * Finds messages that match, newest first. Null if the message `before` does not exist, or the account may not see it.
 * Rejects with SearchTimeoutError if the search takes too long.
 */
export async function searchMessagesByWords(pool: Pool, request: SearchRequest): Promise<SearchPage | null> {
  try {
    return await pool.transaction(async (tx) => {
      // Makes PostgreSQL plan for the actual words: a plan that suits rare words would sort a million rows of common
      // ones. The query looks up the name of the setting, because PostgreSQL 11 does not have that setting.
      await tx`
        select set_config('statement_timeout', ${String(STATEMENT_TIMEOUT_MS)}, true),
          (select set_config(name, 'force_custom_plan', true) from pg_settings where name = 'plan_cache_mode')`;
      const { before, accountId } = request;
      const beforeSentAt = before === null ? null : await findSentAt(tx, before, accountId);
      if (before !== null && beforeSentAt === null) return null;
      return searchBefore(tx, request, beforeSentAt);
    });
  } catch (error) {
    if (sqlState(error) !== QUERY_CANCELED) throw error;
    throw new SearchTimeoutError('the search took too long', { cause: error });
  }
}

/**
 * Returns the time of a message as text, and the search passes it back as text: the library would turn it into a Date,
 * which has no microseconds.
 */
async function findSentAt(tx: Transaction, place: MessagePosition, accountId: AccountId): Promise<string | null> {
  const [row] = await tx<{ at: string }[]>`
    select m.sent_at::text as at
    from message m join membership s on s.conversation_id = m.conversation_id and s.account_id = ${accountId}
    where m.conversation_id = ${place.conversationId} and m.seq = ${place.seq}
      and m.epoch = ${place.logEpoch}`;
  return row?.at ?? null;
}

interface FoundRow extends MessageRow {
  readonly conversationId: ConversationId;
  readonly foundSeq: Seq;
  /** True: a retention rule removed the message, so that its other columns may be null. */
  readonly removed: boolean;
  readonly fits: boolean;
}

async function searchBefore(tx: Transaction, request: SearchRequest, beforeSentAt: string | null): Promise<SearchPage> {
  const { text, accountId, conversationId, before, limit, maxBytes } = request;
  const sql = tx as unknown as Sql;
  const conversationFilter = conversationId === null ? sql`` : sql`and w.conversation_id = ${conversationId}`;
  const beforeFilter =
    before === null || beforeSentAt === null
      ? sql``
      : sql`
        and (w.sent_at, w.conversation_id, w.seq)
          < (${beforeSentAt}::text::timestamptz, ${before.conversationId}::bigint, ${before.seq}::bigint)`;
  const rows = await tx<FoundRow[]>`
    select w.conversation_id as "conversationId", w.seq as "foundSeq", m.seq is null or w.seq < h.first_seq as removed,
      ${messageColumns(tx)}, coalesce(sum(octet_length(m.text)) over (
        order by w.sent_at desc, w.conversation_id desc, w.seq desc rows between unbounded preceding and 1 preceding
      ), 0) < ${maxBytes} as fits
    from (
      select w.sent_at, w.conversation_id, w.seq
      from search_index w
      join membership s on s.conversation_id = w.conversation_id and s.account_id = ${accountId}
      where w.document @@ websearch_to_tsquery('simple', ${text}) ${conversationFilter} ${beforeFilter}
      order by w.sent_at desc, w.conversation_id desc, w.seq desc limit ${limit + 1}
    ) w
    join conversation_head h on h.conversation_id = w.conversation_id
    left join message m on m.conversation_id = w.conversation_id and m.seq = w.seq
    left join account a on a.id = m.sender_id
    order by w.sent_at desc, w.conversation_id desc, w.seq desc`;
  const page = rows.filter((row, index) => index < limit && row.fits);
  const last = page.at(-1);
  return {
    // The index may still contain messages that were just deleted or removed. They are left out, but take a place in
    // the page.
    found: page
      .filter(({ deletedAt, removed }) => deletedAt === null && !removed)
      .map((row) => ({ conversationId: row.conversationId, message: messageOf(row) })),
    next:
      page.length < rows.length && last !== undefined
        ? { conversationId: last.conversationId, seq: last.foundSeq, logEpoch: last.logEpoch ?? (0 as LogEpoch) }
        : null,
  };
}
