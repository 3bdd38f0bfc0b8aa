import * as z from 'zod';

const MAX_PAGE_SIZE = 1_000;

/** The schema of the size of a page of a list: from 1 to `max`, or `byDefault` if the input names none. */
export const pageLimit = (max: number, byDefault: number) =>
  z.int().min(1).max(max).default(byDefault).describe('How many there are at most on the page.');
export const limitSchema = pageLimit(MAX_PAGE_SIZE, 100);

/** The input field `after`, where a page begins: in a list by number, and in a list by nick. */
export const afterNumberSchema = z.int().min(0).default(0).describe('`next` of the page before; 0: the first.');
export const afterNickSchema = z.string().max(64).default('').describe('`next` of the page before; empty: the first.');
/** The output field `next`, where the next page begins. */
export const nextNumberSchema = z
  .int()
  .nullable()
  .describe('Pass it as `after` to get the next page; null: this is the last page.');
export const nextNickSchema = z
  .string()
  .nullable()
  .describe('Pass it as `after` to get the next page; null: this is the last page.');
export const nextSeqSchema = z
  .int()
  .nullable()
  .describe(
    'What to give as `after`, if it was given, else as `before`, for the messages beyond these; null: there are none.',
  );

/**
 * Makes a page of the rows of a query for `limit` + 1 rows. `next` is the key of the last row on the page, after which
 * the next page begins; null: there is no next page.
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
