import type { AccountId, ConversationId } from '../../model/ids.ts';
import type { Sql, Transaction } from '../db/connection.ts';
import { deleteTokenKnowledge } from './departures.ts';

/** What a valid token gives access to. */
export interface Integration {
  readonly conversationId: ConversationId;
  readonly accountId: AccountId;
  readonly tokenHash: string;
  readonly archived: boolean;
}

export interface HashedAndSealedToken {
  readonly hash: string;
  readonly sealed: string;
}

export async function insertIntegration(
  tx: Transaction,
  integration: { conversationId: ConversationId; accountId: AccountId; token: HashedAndSealedToken },
): Promise<void> {
  const { conversationId, accountId, token } = integration;
  await tx`
    insert into integration (conversation_id, account_id, token_hash, token_sealed)
    values (${conversationId}, ${accountId}, ${token.hash}, ${token.sealed})`;
}

export async function findIntegration(sql: Sql, tokenHash: string): Promise<Integration | null> {
  const [row] = await sql<Integration[]>`
    select i.conversation_id as "conversationId", i.account_id as "accountId", i.token_hash as "tokenHash",
      h.archived_at is not null as archived
    from integration i join conversation_head h on h.conversation_id = i.conversation_id
    where i.token_hash = ${tokenHash}`;
  return row ?? null;
}

/** Null: a private conversation, which has none, or a group that is gone. */
export async function findIntegrationOfConversation(
  sql: Sql,
  conversationId: ConversationId,
): Promise<Integration | null> {
  const [row] = await sql<Integration[]>`
    select i.conversation_id as "conversationId", i.account_id as "accountId", i.token_hash as "tokenHash",
      h.archived_at is not null as archived
    from integration i join conversation_head h on h.conversation_id = i.conversation_id
    where i.conversation_id = ${conversationId}`;
  return row ?? null;
}

export async function findSealedToken(sql: Sql, conversationId: ConversationId): Promise<string | null> {
  const [row] = await sql<{ sealed: string }[]>`
    select token_sealed as sealed from integration where conversation_id = ${conversationId}`;
  return row?.sealed ?? null;
}

/** The hash of the token that holds now; null without an integration. */
export async function findIntegrationTokenHash(
  sql: Sql | Transaction,
  conversationId: ConversationId,
): Promise<string | null> {
  const [row] = await sql<{ hash: string }[]>`
    select token_hash as hash from integration where conversation_id = ${conversationId}`;
  return row?.hash ?? null;
}

/** Whether this is the group's token, which stays so until the transaction ends. */
export async function lockAndCompareTokenHash(
  tx: Transaction,
  conversationId: ConversationId,
  hash: string,
): Promise<boolean> {
  const rows = await tx`
    select 1 from integration where conversation_id = ${conversationId} and token_hash = ${hash} for share`;
  return rows.length > 0;
}

/** Puts a new token in the place of the old one; the hooks stay. Returns the old token's hash, null without a group. */
export async function replaceIntegrationToken(
  tx: Transaction,
  conversationId: ConversationId,
  token: HashedAndSealedToken,
): Promise<string | null> {
  const [old] = await tx<{ hash: string }[]>`
    select token_hash as hash from integration where conversation_id = ${conversationId} for update`;
  if (old === undefined) return null;
  await tx`
    update integration set token_hash = ${token.hash}, token_sealed = ${token.sealed}, rotated_at = now()
    where conversation_id = ${conversationId}`;
  await deleteTokenKnowledge(tx, conversationId);
  return old.hash;
}
