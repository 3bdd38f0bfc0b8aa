import * as z from 'zod';

/**
 * A moment as RFC 3339 writes it, with its zone, since without one nobody could tell whose it is; null for anything
 * else, and for one before the year 1 or after 9999 in UTC: neither has a text that PostgreSQL reads.
 */
export function parseTimestamp(text: string): Date | null {
  if (!z.iso.datetime({ offset: true }).safeParse(text).success) return null;
  const timestamp = new Date(text);
  const year = timestamp.getUTCFullYear();
  return year >= 1 && year <= 9999 ? timestamp : null;
}
