import type { AccountId } from '../../model/ids.ts';
import type { Sql, Transaction } from '../db/connection.ts';

/** Bytes that the files of one account may take, and those of all. */
export interface UsageLimits {
  readonly maxAccountBytes: number;
  readonly maxTotalBytes: number;
}

/** What files take. */
interface Usage {
  readonly bytes: number;
  readonly files: number;
}

/** Whose room is used up. */
export type ExceededQuota = 'account_full' | 'all_full';

/** The row that counts all accounts together. */
const TOTAL_ROW_ID = 0;

/** What the files of an account take, those under way included. */
export async function readUsage(sql: Sql | Transaction, accountId: AccountId): Promise<Usage> {
  const [row] = await sql<Usage[]>`select bytes, files from file_usage where account_id = ${accountId}`;
  return row ?? { bytes: 0, files: 0 };
}

/** What all files take. */
export async function readTotalUsage(sql: Sql | Transaction): Promise<Usage> {
  return readUsage(sql, TOTAL_ROW_ID as AccountId);
}

/**
 * Counts `minBytes` to `wishedBytes` bytes more, as many as there is room for, and so many files. Resolves to the bytes that
 * were counted, or to whose room is used up: then nothing was. The rows stay locked until the transaction ends, so that
 * limits hold for uploads at once; whoever holds the lock of a file as well has taken that one first.
 */
export async function reserveUsage(
  tx: Transaction,
  accountId: AccountId,
  more: { minBytes: number; wishedBytes: number; files: number; limits: UsageLimits },
): Promise<number | ExceededQuota> {
  const { minBytes, wishedBytes, files, limits } = more;
  const { ownBytes, totalBytes } = await lockUsage(tx, accountId);
  const ownRoom = limits.maxAccountBytes - ownBytes;
  const allRoom = limits.maxTotalBytes - totalBytes;
  if (ownRoom < minBytes) return 'account_full';
  if (allRoom < minBytes) return 'all_full';
  const bytes = Math.min(wishedBytes, ownRoom, allRoom);
  await addUsage(tx, accountId, { bytes, files });
  return bytes;
}

/** Counts less. Below zero it is wrong already, which `correctUsageCounts` mends. */
export async function releaseUsage(tx: Transaction, accountId: AccountId, less: Usage): Promise<void> {
  if (less.bytes === 0 && less.files === 0) return;
  await lockUsage(tx, accountId);
  await addUsage(tx, accountId, { bytes: -less.bytes, files: -less.files });
}

/** Counts everything anew; resolves to how many rows were wrong. */
export async function correctUsageCounts(tx: Transaction): Promise<number> {
  // Whoever counts holds a row of it until its commit: beneath this lock nobody is between the two tables.
  await tx`lock table file_usage in exclusive mode`;
  const rows = await tx`
    with owned as (
      select owner_id as account_id, sum(coalesce(size, 0))::bigint as bytes, count(*) as files
      from file group by owner_id
    ), counted as (
      select account_id, bytes, files from owned
      union all select ${TOTAL_ROW_ID}::bigint, coalesce(sum(bytes), 0)::bigint, coalesce(sum(files), 0)::bigint from owned
      union all select account_id, 0, 0 from file_usage
        where account_id <> ${TOTAL_ROW_ID} and account_id not in (select account_id from owned)
    )
    insert into file_usage as u (account_id, bytes, files) select account_id, bytes, files from counted
    on conflict (account_id) do update set bytes = excluded.bytes, files = excluded.files
      where u.bytes <> excluded.bytes or u.files <> excluded.files
    returning account_id`;
  return rows.length;
}

async function lockUsage(tx: Transaction, accountId: AccountId): Promise<{ ownBytes: number; totalBytes: number }> {
  const lock = async (): Promise<Map<number, number>> => {
    const rows = await tx<{ account: number; bytes: number }[]>`
      select account_id as account, bytes from file_usage where account_id in (${TOTAL_ROW_ID}, ${accountId})
      order by account_id for no key update`;
    return new Map(rows.map(({ account, bytes }) => [account, bytes]));
  };
  let found = await lock();
  if (found.size < 2) {
    await tx`
      insert into file_usage (account_id) values (${TOTAL_ROW_ID}), (${accountId}) on conflict (account_id) do nothing`;
    found = await lock();
  }
  return { ownBytes: found.get(accountId)!, totalBytes: found.get(TOTAL_ROW_ID)! };
}

async function addUsage(tx: Transaction, accountId: AccountId, more: Usage): Promise<void> {
  await tx`
    update file_usage set bytes = greatest(0, bytes + ${more.bytes}), files = greatest(0, files + ${more.files})
    where account_id in (${TOTAL_ROW_ID}, ${accountId})`;
}
