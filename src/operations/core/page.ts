import * as z from 'zod';

const MAX_PAGE_SIZE = 1_000;

/** How much of a list is wanted at once. */
export const limitSchema = z.int().min(1).max(MAX_PAGE_SIZE).default(100);

/**
 * A page out of rows that were asked for with one more than `limit`; `next` is the key to go on after, null when this
 * was all.
 */
export function pageOf<Row, Key>(
  rows: readonly Row[],
  limit: number,
  keyOf: (row: Row) => Key,
): { page: readonly Row[]; next: Key | null } {
  const page = rows.slice(0, limit);
  const last = page.at(-1);
  return { page, next: rows.length > limit && last !== undefined ? keyOf(last) : null };
}
