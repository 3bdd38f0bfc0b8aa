import { randomBytes } from 'node:crypto';
import type { AccountId, ConversationId } from '../../model/ids.ts';
import type { Fragment, Sql, Transaction } from '../db/connection.ts';
import { clearKnowsTokenMarks } from './departures.ts';

/** The access that a valid integration token gives. */
export interface Integration {
  readonly conversationId: ConversationId;
  readonly accountId: AccountId;
  readonly tokenHash: string;
  /**
   * A post is written only if this value is the same as when the post was accepted. It changes with each change of the
   * token or of the incoming secret.
   */
  readonly admission: string;
  readonly archived: boolean;
  /** The sealed secret for the signatures of posts; null: posts need no signature. */
  readonly incomingSecretSealed: string | null;
  /** Every post must be signed with the incoming secret, even in a format without signatures. */
  readonly signedOnly: boolean;
}

const ADMISSION_SUFFIX_BYTES = 8;

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

const integrationColumns = (sql: Sql): Fragment => sql`
  i.conversation_id as "conversationId", i.account_id as "accountId", i.token_hash as "tokenHash",
  coalesce(i.admission, i.token_hash) as admission, h.archived_at is not null as archived,
  i.incoming_secret_sealed as "incomingSecretSealed", i.signed_only as "signedOnly"`;

export async function findIntegration(sql: Sql, tokenHash: string): Promise<Integration | null> {
  const [row] = await sql<Integration[]>`
    select ${integrationColumns(sql)} from integration i join conversation_head h on h.conversation_id = i.conversation_id
    where i.token_hash = ${tokenHash}`;
  return row ?? null;
}

/**
 * The integration of a group. Null: there is no such group, or the conversation is private and so has no integration.
 */
export async function findIntegrationOfConversation(
  sql: Sql,
  conversationId: ConversationId,
): Promise<Integration | null> {
  const [row] = await sql<Integration[]>`
    select ${integrationColumns(sql)} from integration i join conversation_head h on h.conversation_id = i.conversation_id
    where i.conversation_id = ${conversationId}`;
  return row ?? null;
}

export async function findSealedToken(sql: Sql, conversationId: ConversationId): Promise<string | null> {
  const [row] = await sql<{ sealed: string }[]>`
    select token_sealed as sealed from integration where conversation_id = ${conversationId}`;
  return row?.sealed ?? null;
}

/** The hash of the current integration token; null: the conversation has no integration. */
export async function findIntegrationTokenHash(
  sql: Sql | Transaction,
  conversationId: ConversationId,
): Promise<string | null> {
  const [row] = await sql<{ hash: string }[]>`
    select token_hash as hash from integration where conversation_id = ${conversationId}`;
  return row?.hash ?? null;
}

/** Whether the hash is that of the group's token. If so, the token cannot change until the transaction ends. */
export async function lockAndCompareTokenHash(
  tx: Transaction,
  conversationId: ConversationId,
  tokenHash: string,
): Promise<boolean> {
  const rows = await tx`
    select 1 from integration where conversation_id = ${conversationId} and token_hash = ${tokenHash} for share`;
  return rows.length > 0;
}

/** A new value of `admission`, with which no post was accepted before. */
const newAdmission = (tokenHash: string): string =>
  `${tokenHash}.${randomBytes(ADMISSION_SUFFIX_BYTES).toString('hex')}`;

/** Replaces a group's integration token; the hooks stay. Returns the old token's hash; null: there is no such group. */
export async function replaceIntegrationToken(
  tx: Transaction,
  conversationId: ConversationId,
  token: HashedAndSealedToken,
): Promise<string | null> {
  const [old] = await tx<{ hash: string }[]>`
    select token_hash as hash from integration where conversation_id = ${conversationId} for update`;
  if (old === undefined) return null;
  await tx`
    update integration set token_hash = ${token.hash}, token_sealed = ${token.sealed}, rotated_at = now(),
      admission = case when incoming_secret_sealed is null then null else ${newAdmission(token.hash)} end
    where conversation_id = ${conversationId}`;
  await clearKnowsTokenMarks(tx, conversationId);
  return old.hash;
}

/** A secret for the signatures of posts, and whether posts of formats without signatures are refused. */
export interface SealedIncomingSecret {
  readonly sealed: string;
  readonly signedOnly: boolean;
}

/** The group's incoming secret; null: the group has none. */
export async function findIncomingSecret(
  sql: Sql | Transaction,
  conversationId: ConversationId,
): Promise<SealedIncomingSecret | null> {
  const [row] = await sql<SealedIncomingSecret[]>`
    select incoming_secret_sealed as sealed, signed_only as "signedOnly" from integration
    where conversation_id = ${conversationId} and incoming_secret_sealed is not null`;
  return row ?? null;
}

/**
 * Sets or, with null, removes the incoming secret of a group. Posts that were accepted before, but are not written yet,
 * are then refused. The caller holds the lock of the group. Returns the hash of the group's token.
 */
export async function updateIncomingSecret(
  tx: Transaction,
  conversationId: ConversationId,
  secret: SealedIncomingSecret | null,
): Promise<string> {
  const tokenHash = (await findIntegrationTokenHash(tx, conversationId))!;
  await tx`
    update integration set incoming_secret_sealed = ${secret?.sealed ?? null}, signed_only = ${secret?.signedOnly ?? false},
      admission = ${secret === null ? null : newAdmission(tokenHash)}
    where conversation_id = ${conversationId}`;
  return tokenHash;
}
