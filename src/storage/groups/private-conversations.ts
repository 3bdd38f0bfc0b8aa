import type { AccountId, ConversationId } from '../../model/ids.ts';
import type { Sql, Transaction } from '../db/connection.ts';

/** Two people, in any order. */
export type UnsortedAccountPair = readonly [AccountId, AccountId];

/** The private conversation of two people; null: neither of them has opened one yet. */
export async function findPrivateConversation(
  sql: Sql | Transaction,
  pair: UnsortedAccountPair,
): Promise<ConversationId | null> {
  const [row] = await sql<{ id: ConversationId }[]>`
    select conversation_id as id from private_conversation
    where low_id = ${Math.min(...pair)} and high_id = ${Math.max(...pair)}`;
  return row?.id ?? null;
}

/** Inserts the private conversation of two people, who become its members. Rejects where the two have one already. */
export async function insertPrivateConversation(tx: Transaction, pair: UnsortedAccountPair): Promise<ConversationId> {
  const [low, high] = [Math.min(...pair), Math.max(...pair)];
  const [row] = await tx<{ id: ConversationId }[]>`insert into conversation (kind) values ('private') returning id`;
  const { id } = row!;
  await tx`insert into conversation_head (conversation_id) values (${id})`;
  await tx`insert into private_conversation (conversation_id, low_id, high_id) values (${id}, ${low}, ${high})`;
  await tx`
    insert into membership (conversation_id, account_id, role) values (${id}, ${low}, 'member'), (${id}, ${high}, 'member')`;
  return id;
}

/** Which of two accounts has blocked the other. */
interface PairBlocks {
  readonly byFirst: boolean;
  readonly bySecond: boolean;
}

/** Whether each of two accounts has blocked the other. */
export async function findBlocks(sql: Sql | Transaction, [first, second]: UnsortedAccountPair): Promise<PairBlocks> {
  const [row] = await sql<PairBlocks[]>`
    select exists (select from block where account_id = ${first} and blocked_id = ${second}) as "byFirst",
      exists (select from block where account_id = ${second} and blocked_id = ${first}) as "bySecond"`;
  return row!;
}
