import * as z from 'zod';

/**
 * Parses an RFC 3339 timestamp with its zone, without which the moment would be ambiguous. Null for any other text, and
 * for a moment before the year 1 or after 9999 in UTC, which PostgreSQL cannot read.
 */
export function parseTimestamp(text: string): Date | null {
  if (!z.iso.datetime({ offset: true }).safeParse(text).success) return null;
  const timestamp = new Date(text);
  const year = timestamp.getUTCFullYear();
  return year >= 1 && year <= 9999 ? timestamp : null;
}
