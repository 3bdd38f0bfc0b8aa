import type { AccountId, ConversationId, LogEpoch, Seq } from '../../model/ids.ts';
import type { PictureSize } from '../../model/picture-size.ts';
import type { Sql, Transaction } from '../db/connection.ts';
import { reserveUsage, releaseUsage, type ExceededQuota, type UsageLimits } from './file-usage.ts';

/** The state of an upload: incomplete, complete, complete but lost by the store, or to be deleted from the store. */
export type FileState = 'uploading' | 'stored' | 'lost' | 'removed';

/** The store's own record of an upload: JSON that only the store reads. */
type UploadState = Readonly<Record<string, unknown>>;

/** A row of the table `file`. */
export interface FileRow {
  readonly id: string;
  readonly ownerId: AccountId;
  readonly name: string;
  readonly type: string;
  /**
   * Bytes that `file_usage` counts for the file: the announced size, else the bytes granted so far; for a complete file
   * its size.
   */
  readonly size: number;
  readonly received: number;
  readonly state: FileState;
  /** True: the file comes in parts. False: one request sends all of the file, and no other request writes to it. */
  readonly isResumable: boolean;
  readonly upload: UploadState | null;
  /** The message that the file is attached to; `seq` null: none. */
  readonly conversationId: ConversationId | null;
  readonly seq: Seq | null;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

/** A file before its upload. */
export interface NewUpload {
  readonly id: string;
  readonly ownerId: AccountId;
  readonly name: string;
  /** The size that the client announced. Null: the size is unknown, and bytes are granted part by part. */
  readonly announcedBytes: number | null;
  /** True: requests other than the current one may continue the upload. */
  readonly isResumable?: boolean;
}

interface UploadLimits extends UsageLimits {
  /** The maximum number of incomplete uploads of one account. */
  readonly maxUnfinishedUploads: number;
}

const MAX_LISTED_FILES = 1_001;

/** The type of a file before the server has read its first bytes. */
const UNKNOWN_TYPE = 'application/octet-stream';

const fileColumns = (sql: Sql | Transaction) => sql`
  f.id, f.owner_id as "ownerId", f.name, f.type, coalesce(f.size, 0) as size, f.received, f.state, f.upload,
  f.resumable as "isResumable",
  f.conversation_id as "conversationId", f.seq, f.created_at as "createdAt", f.updated_at as "updatedAt"`;

/**
 * Inserts a file's row before its first byte, and reserves its space. Resolves to null, or to the reason why there is
 * no row: the exceeded quota, or too many unfinished uploads of the account.
 */
export async function insertUpload(
  tx: Transaction,
  upload: NewUpload,
  limits: UploadLimits,
): Promise<ExceededQuota | 'too_many' | null> {
  const { id, ownerId, name, announcedBytes, isResumable = false } = upload;
  const bytes = announcedBytes ?? 0;
  const counted = await reserveUsage(tx, ownerId, { minBytes: bytes, wishedBytes: bytes, files: 1, limits });
  if (typeof counted === 'string') return counted;
  // The count runs under the lock of the account's usage, so that two parallel uploads cannot both take the last free
  // slot.
  const [row] = await tx<{ count: number }[]>`
    select count(*)::int as count from file where owner_id = ${ownerId} and state = 'uploading'`;
  if (row!.count >= limits.maxUnfinishedUploads) {
    await releaseUsage(tx, ownerId, { bytes, files: 1 });
    return 'too_many';
  }
  await tx`
    insert into file (id, owner_id, name, type, size, resumable)
    values (${id}, ${ownerId}, ${name}, ${UNKNOWN_TYPE}, ${bytes}, ${isResumable})`;
  return null;
}

/**
 * Grants an upload of unknown length up to `wishedBytes` bytes in total, at least `minBytes`. Resolves to the bytes
 * that it may have now, to the quota that is used up, or to null when the upload is no longer in progress.
 */
export async function grantUploadBytes(
  tx: Transaction,
  fileId: string,
  requested: { minBytes: number; wishedBytes: number; limits: UsageLimits },
): Promise<number | ExceededQuota | null> {
  const [row] = await tx<{ ownerId: AccountId; size: number }[]>`
    select owner_id as "ownerId", coalesce(size, 0) as size from file
    where id = ${fileId} and state = 'uploading' for no key update`;
  if (row === undefined) return null;
  const { minBytes, wishedBytes, limits } = requested;
  const [more, most] = [Math.max(0, minBytes - row.size), Math.max(0, wishedBytes - row.size)];
  const counted = await reserveUsage(tx, row.ownerId, { minBytes: more, wishedBytes: most, files: 0, limits });
  if (typeof counted === 'string') return counted;
  const size = row.size + counted;
  await tx`update file set size = ${size}, updated_at = now() where id = ${fileId}`;
  return size;
}

/**
 * Records how many bytes of an upload are stored safely. The writer expects that `received` in the row is between
 * `minRowReceived` and `maxRowReceived`. False: it has another value, since another writer continues the upload, or the
 * upload is no longer in progress.
 */
export async function recordUploadProgress(
  sql: Sql | Transaction,
  fileId: string,
  progress: { minRowReceived: number; maxRowReceived: number; received: number; upload: UploadState },
): Promise<boolean> {
  const { minRowReceived, maxRowReceived, received, upload } = progress;
  const rows = await sql`
    update file set received = ${received}, upload = ${sql.json(upload as never)}, updated_at = now()
    where id = ${fileId} and state = 'uploading' and received between ${minRowReceived} and ${maxRowReceived} returning id`;
  return rows.length > 0;
}

/** Marks a file as complete, with its real size. False: the file was removed meanwhile. A repeated call is no error. */
export async function finishUpload(
  tx: Transaction,
  fileId: string,
  completeFile: { size: number; type: string; picture?: PictureSize | null },
): Promise<boolean> {
  const { size, type, picture = null } = completeFile;
  const [row] = await tx<{ ownerId: AccountId; state: FileState; counted: number }[]>`
    select owner_id as "ownerId", state, coalesce(size, 0) as counted from file where id = ${fileId}
    for no key update`;
  if (row === undefined || row.state === 'removed') return false;
  if (row.state === 'stored') return true;
  await tx`
    update file set state = 'stored', size = ${size}, received = ${size}, type = ${type}, upload = null,
      width = ${picture?.width ?? null}, height = ${picture?.height ?? null}, updated_at = now()
    where id = ${fileId}`;
  await releaseUsage(tx, row.ownerId, { bytes: row.counted - size, files: 0 });
  return true;
}

/**
 * Marks a file as removed that is attached to no message. No account can read or attach it any more, and the sweeper
 * deletes it from the store. With `ownerId`, it marks only a file of this account. Resolves to the file's row; null:
 * there is no such file, or it is attached to a message. A repeated call is no error.
 */
export async function markUnattachedFileRemoved(
  sql: Sql | Transaction,
  fileId: string,
  ownerId: AccountId | null = null,
): Promise<FileRow | null> {
  const [row] = await sql<FileRow[]>`
    update file f set state = 'removed', size = coalesce(size, received), updated_at = now()
    where f.id = ${fileId} and (f.seq is null or f.state = 'removed')
      and (${ownerId}::bigint is null or f.owner_id = ${ownerId})
    returning ${fileColumns(sql)}`;
  return row ?? null;
}

/**
 * Marks as removed at most `limit` files, uploads in progress included, that are attached to no message and have not
 * changed since `cutoff`. Returns their number.
 */
export async function markStaleUnattachedRemoved(sql: Sql | Transaction, cutoff: Date, limit: number): Promise<number> {
  const rows = await sql`
    update file set state = 'removed', size = coalesce(size, received), updated_at = now()
    where id in (
      select id from file where seq is null and state <> 'removed' and updated_at < ${cutoff}
      order by updated_at limit ${limit} for update skip locked)
    returning id`;
  return rows.length;
}

/** The files that are marked as removed and are still in the store; those removed longest ago come first. */
export async function listRemovedFiles(sql: Sql, limit: number): Promise<FileRow[]> {
  return sql<FileRow[]>`
    select ${fileColumns(sql)} from file f where f.state = 'removed' order by f.updated_at limit ${Math.min(limit, MAX_LISTED_FILES)}`;
}

/** Moves a file that could not be deleted from the store to the end of the list of removed files. */
export async function postponeRemoval(sql: Sql, id: string): Promise<void> {
  await sql`update file set updated_at = clock_timestamp() where id = ${id} and state = 'removed'`;
}

/** Deletes the row of a file that the store has deleted, and releases its space. False: there is no such row. */
export async function deleteRowReleasingUsage(tx: Transaction, id: string): Promise<boolean> {
  const [row] = await tx<{ ownerId: AccountId; bytes: number }[]>`
    delete from file where id = ${id} returning owner_id as "ownerId", coalesce(size, 0) as bytes`;
  if (row === undefined) return false;
  await releaseUsage(tx, row.ownerId, { bytes: row.bytes, files: 1 });
  return true;
}

/** The file with this id, in any state. */
export async function findFile(sql: Sql | Transaction, id: string): Promise<FileRow | null> {
  const [row] = await sql<FileRow[]>`select ${fileColumns(sql)} from file f where f.id = ${id}`;
  return row ?? null;
}

/**
 * A complete file that an account may read. Before the file is attached to a message, its owner may; after that, the
 * members of the message's conversation may. A deactivated account reads nothing.
 */
export async function findReadableFile(sql: Sql, id: string, accountId: AccountId): Promise<FileRow | null> {
  const [row] = await sql<FileRow[]>`
    select ${fileColumns(sql)} from file f
    where f.id = ${id} and f.state = 'stored'
      and exists (select from account a where a.id = ${accountId} and a.deactivated_at is null)
      and case when f.seq is null then f.owner_id = ${accountId} else exists (
        select from membership m join conversation_head h on h.conversation_id = m.conversation_id
        where m.conversation_id = f.conversation_id and m.account_id = ${accountId} and f.seq >= h.first_seq) end`;
  return row ?? null;
}

/**
 * A complete file of a message in this conversation; null when there is none, or a retention rule removed the message.
 */
export async function findConversationFile(
  sql: Sql,
  fileId: string,
  conversationId: ConversationId,
): Promise<FileRow | null> {
  const [row] = await sql<FileRow[]>`
    select ${fileColumns(sql)} from file f
    where f.id = ${fileId} and f.state = 'stored' and f.conversation_id = ${conversationId}
      and f.seq >= (select first_seq from conversation_head where conversation_id = ${conversationId})`;
  return row ?? null;
}

/**
 * A file's position in its owner's list of files, which stays valid when the file is removed. `createdAtUs` counts
 * microseconds since 1970: a Date has only milliseconds.
 */
export interface FilePosition {
  readonly createdAtUs: string;
  readonly id: string;
}

/** An account's own files that are not removed, newest first, after the position `before`. */
export async function listFilesOfAccount(
  sql: Sql,
  page: { ownerId: AccountId; before: FilePosition | null; limit: number },
): Promise<(FileRow & FilePosition & { logEpoch: LogEpoch })[]> {
  const { ownerId, before, limit } = page;
  const behind = sql`and (f.created_at, f.id) <
    ('epoch'::timestamptz + ${before?.createdAtUs ?? '0'}::bigint * interval '1 microsecond', ${before?.id ?? ''})`;
  return sql<(FileRow & FilePosition & { logEpoch: LogEpoch })[]>`
    select ${fileColumns(sql)}, (extract(epoch from f.created_at) * 1000000)::bigint::text as "createdAtUs",
      coalesce((select m.epoch from message m where m.conversation_id = f.conversation_id and m.seq = f.seq), 0) as "logEpoch"
    from file f
    where f.owner_id = ${ownerId} and f.state <> 'removed' ${before === null ? sql`` : behind}
    order by f.created_at desc, f.id desc limit ${Math.min(limit, MAX_LISTED_FILES)}`;
}
