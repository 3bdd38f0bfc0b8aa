import type { AccountId, ConversationId } from '../../model/ids.ts';
import type { Fragment, Sql } from '../db/connection.ts';

/** A person or a bot, as completions and pickers show it. */
interface FoundAccount {
  readonly id: AccountId;
  readonly kind: 'user' | 'bot';
  readonly nick: string;
  readonly name: string;
}

interface AccountSearchRequest {
  readonly text: string;
  /** Only accounts whose nick sorts after this one. */
  readonly after: string;
  readonly limit: number;
  /** Only the members of this conversation, if `memberId` is one of them; null: all accounts. */
  readonly conversationId: ConversationId | null;
  readonly memberId: AccountId;
}

const MAX_LISTED = 1_001;
/**
 * The last code point of Unicode. A prefix with this character at its end sorts after every text with the prefix, in
 * byte order.
 */
const LAST_CHARACTER = '\u{10ffff}';

/**
 * Active people and bots whose nick or name begins with the text in any case, sorted by nick. Members of a conversation
 * are few, so among them the text also matches the beginning of any word of the name.
 */
export async function searchAccounts(sql: Sql, request: AccountSearchRequest): Promise<FoundAccount[]> {
  const { after, limit, conversationId, memberId, text } = request;
  const prefix = sql`lower(${text}::text)`;
  const conversationJoin = sql`
    join membership m on m.account_id = a.id and m.conversation_id = ${conversationId}
    join membership own on own.conversation_id = m.conversation_id and own.account_id = ${memberId}`;
  const nameCondition =
    conversationId === null
      ? beginsWith(sql, sql`lower(a.name)`, prefix)
      : sql`position(' ' || ${prefix} in ' ' || lower(a.name)) > 0`;
  return sql<FoundAccount[]>`
    select a.id, a.kind, a.nick, a.name from account a ${conversationId === null ? sql`` : conversationJoin}
    where a.nick is not null and a.deactivated_at is null and a.nick > ${after}
      and (${beginsWith(sql, sql`a.nick`, prefix)} or ${nameCondition})
    order by a.nick limit ${Math.min(limit, MAX_LISTED)}`;
}

/**
 * Whether a column begins with a prefix. An index also serves these operators when the prefix is a parameter, unlike
 * LIKE.
 */
function beginsWith(sql: Sql, column: Fragment, prefix: Fragment): Fragment {
  return sql`(${column} ~>=~ ${prefix} and ${column} ~<~ (${prefix} || ${LAST_CHARACTER}))`;
}
