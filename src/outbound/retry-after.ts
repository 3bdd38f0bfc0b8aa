const DELAY_SECONDS_PATTERN = /^\d{1,12}(?:\.\d{1,6})?$/;
const HAS_TIME_ZONE = /(?:GMT|UTC|Z|[+-]\d{4})$/i;

/**
 * Parses a header `Retry-After` (RFC 9110, 10.2.3). The value may be whole seconds, a fraction (which some services
 * send), or a date in one of the three formats of HTTP.
 *
 * @param nowMs the present time of the wall clock, in Unix milliseconds
 * @returns the milliseconds to wait, without an upper bound; 0 for a date in the past; null if the value is absent or
 *   invalid
 */
export function parseRetryAfter(value: string | readonly string[] | undefined, nowMs: number): number | null {
  const text = (typeof value === 'string' ? value : value?.[0])?.trim();
  if (text === undefined) return null;
  if (DELAY_SECONDS_PATTERN.test(text)) return Math.round(Number(text) * 1000);
  // Date.parse accepts many strings that are no dates ("a 1"). All HTTP dates begin with the day of the week and
  // contain a time.
  if (!/^[A-Z][a-z]{2,8},? .*\d\d:\d\d:\d\d/.test(text) || text.length > 40) return null;
  // Dates in asctime() format have no time zone and are in GMT. Date.parse would read them as local time.
  const dateMs = Date.parse(HAS_TIME_ZONE.test(text) ? text : `${text} GMT`);
  return Number.isNaN(dateMs) ? null : Math.max(0, dateMs - nowMs);
}
