import type { AccountId } from '../../model/ids.ts';
import type { Sql, Transaction } from '../db/connection.ts';

interface BlockedAccount {
  readonly id: AccountId;
  readonly nick: string;
  readonly name: string;
  readonly at: Date;
}

const MAX_LISTED = 1_001;

/** Records that an account has blocked another. False: the block existed already. */
export async function insertBlock(tx: Transaction, accountId: AccountId, blockedId: AccountId): Promise<boolean> {
  const rows = await tx`
    insert into block (account_id, blocked_id) values (${accountId}, ${blockedId})
    on conflict (account_id, blocked_id) do nothing
    returning 1`;
  return rows.length > 0;
}

/** The number of accounts that an account has blocked. */
export async function countBlocks(tx: Transaction, accountId: AccountId): Promise<number> {
  const [row] = await tx<{ count: number }[]>`
    select count(*)::int as count from block where account_id = ${accountId}`;
  return row!.count;
}

/** Deletes a block; false when there was none. */
export async function deleteBlock(sql: Sql, accountId: AccountId, blockedId: AccountId): Promise<boolean> {
  const rows = await sql`
    delete from block where account_id = ${accountId} and blocked_id = ${blockedId} returning blocked_id`;
  return rows.length > 0;
}

/** The accounts that an account has blocked, sorted by id. */
export async function listBlocks(
  sql: Sql,
  { accountId, after, limit }: { accountId: AccountId; after: number; limit: number },
): Promise<BlockedAccount[]> {
  return sql<BlockedAccount[]>`
    select a.id, a.nick, a.name, b.created_at as at from block b join account a on a.id = b.blocked_id
    where b.account_id = ${accountId} and b.blocked_id > ${after}
    order by b.blocked_id limit ${Math.min(limit, MAX_LISTED)}`;
}
