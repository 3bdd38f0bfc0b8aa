import type { AccountId } from '../../model/ids.ts';
import type { Sql, Transaction } from '../db/connection.ts';

/** Bytes that the files of one account, and of all accounts together, may use. */
export interface UsageLimits {
  readonly maxAccountBytes: number;
  readonly maxTotalBytes: number;
}

/** The space that files use. */
interface FileUsage {
  readonly bytes: number;
  readonly files: number;
}

/** The quota that is used up: that of the account, or that of all accounts together. */
export type ExceededQuota = 'account_full' | 'all_full';

/** The account id of the row in `file_usage` that counts all accounts together. */
const TOTAL_ROW_ID = 0;

/** The space that the files of an account use, unfinished uploads included. */
export async function readUsage(sql: Sql | Transaction, accountId: AccountId): Promise<FileUsage> {
  const [row] = await sql<FileUsage[]>`select bytes, files from file_usage where account_id = ${accountId}`;
  return row ?? { bytes: 0, files: 0 };
}

/** The space that all files use. */
export async function readTotalUsage(sql: Sql | Transaction): Promise<FileUsage> {
  return readUsage(sql, TOTAL_ROW_ID as AccountId);
}

/**
 * Reserves `minBytes` to `wishedBytes` more bytes, as many as the limits allow, and `files` more files. Resolves to the
 * reserved bytes. If a quota is used up, it resolves to that quota and reserves nothing. The counters stay locked until
 * the transaction ends, so that limits hold for parallel uploads. A caller that also locks a file has to lock the file
 * first.
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

/**
 * Reduces the counted bytes and files of an account. A count that would fall below zero was wrong before: it becomes 0,
 * and `correctUsageCounts` corrects it later.
 */
export async function releaseUsage(tx: Transaction, accountId: AccountId, less: FileUsage): Promise<void> {
  if (less.bytes === 0 && less.files === 0) return;
  await lockUsage(tx, accountId);
  await addUsage(tx, accountId, { bytes: -less.bytes, files: -less.files });
}

/** Recounts the files of all accounts and corrects wrong counts; resolves with the number of wrong rows. */
export async function correctUsageCounts(tx: Transaction): Promise<number> {
  // Every transaction that changes a count locks rows of `file_usage` until its commit. So under this lock no
  // transaction has changed only one of the tables `file` and `file_usage`.
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
  let bytesByAccount = await lock();
  if (bytesByAccount.size < 2) {
    await tx`
      insert into file_usage (account_id) values (${TOTAL_ROW_ID}), (${accountId}) on conflict (account_id) do nothing`;
    bytesByAccount = await lock();
  }
  return { ownBytes: bytesByAccount.get(accountId)!, totalBytes: bytesByAccount.get(TOTAL_ROW_ID)! };
}

async function addUsage(tx: Transaction, accountId: AccountId, more: FileUsage): Promise<void> {
  await tx`
    update file_usage set bytes = greatest(0, bytes + ${more.bytes}), files = greatest(0, files + ${more.files})
    where account_id in (${TOTAL_ROW_ID}, ${accountId})`;
}
