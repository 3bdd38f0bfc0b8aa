import * as z from 'zod';

/**
 * Parses a moment in RFC 3339 with a time zone. Null: the text is no such moment, or its year in UTC is not 1 to 9999,
 * which PostgreSQL could not read.
 */
export function parseTimestamp(text: string): Date | null {
  if (!z.iso.datetime({ offset: true }).safeParse(text).success) return null;
  const timestamp = new Date(text);
  const year = timestamp.getUTCFullYear();
  return year >= 1 && year <= 9999 ? timestamp : null;
}
