import type { Sql } from '../db/connection.ts';
import type { FileState } from './files.ts';

/** The columns of a file's row that the check of the store compares with the store. */
export interface StoreCheckRow {
  readonly id: string;
  readonly state: FileState;
  readonly size: number;
}

/** The rows of the files with ids after `after`, in the byte order of their ids. */
export async function listStoreCheckRows(
  sql: Sql,
  { after, limit }: { after: string | null; limit: number },
): Promise<StoreCheckRow[]> {
  return sql<StoreCheckRow[]>`
    select id, state, coalesce(size, 0) as size from file where id > ${after ?? ''} order by id limit ${limit}`;
}

/** The files' rows with these ids, keyed by id; ids without a row are left out. */
export async function findStoreCheckRows(sql: Sql, ids: readonly string[]): Promise<Map<string, StoreCheckRow>> {
  const rows = await sql<StoreCheckRow[]>`
    select id, state, coalesce(size, 0) as size from file where id = any(${[...ids]}::text[])`;
  return new Map(rows.map((row) => [row.id, row]));
}

/**
 * Records that the store has lost a file, or has it again. False: the file's row is no longer in the state that the
 * call would change.
 */
export async function markLostOrFound(sql: Sql, id: string, isThere: boolean): Promise<boolean> {
  const [from, to] = isThere ? ['lost', 'stored'] : ['stored', 'lost'];
  const rows = await sql`
    update file set state = ${to}, updated_at = now() where id = ${id} and state = ${from} returning id`;
  return rows.length > 0;
}
