import * as z from 'zod';

const MAX_PAGE_SIZE = 1_000;

/** How many items of a list to return. */
export const limitSchema = z.int().min(1).max(MAX_PAGE_SIZE).default(100);

/**
 * Makes a page from rows that were queried with one more than `limit`; `next` is the key after which the next page
 * begins, null on the last page.
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
