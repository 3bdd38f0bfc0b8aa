const DELAY_SECONDS_PATTERN = /^\d{1,12}(?:\.\d{1,6})?$/;
const HAS_TIME_ZONE = /(?:GMT|UTC|Z|[+-]\d{4})$/i;

/**
 * Reads a `Retry-After` header (RFC 9110, 10.2.3): whole seconds, fractions as some services send them, or one of the
 * three HTTP date forms.
 *
 * @param nowMs wall clock, milliseconds since 1970
 * @returns milliseconds to wait, 0 for a date in the past, null when there is nothing readable. Not capped.
 */
export function parseRetryAfter(value: string | readonly string[] | undefined, nowMs: number): number | null {
  const text = (typeof value === 'string' ? value : value?.[0])?.trim();
  if (text === undefined) return null;
  if (DELAY_SECONDS_PATTERN.test(text)) return Math.round(Number(text) * 1000);
  // Date.parse takes many strings that are no dates ("a 1"); all HTTP dates begin with the day and hold a time.
  if (!/^[A-Z][a-z]{2,8},? .*\d\d:\d\d:\d\d/.test(text) || text.length > 40) return null;
  // asctime() dates name no zone and mean GMT, while Date.parse takes them as local time.
  const dateMs = Date.parse(HAS_TIME_ZONE.test(text) ? text : `${text} GMT`);
  return Number.isNaN(dateMs) ? null : Math.max(0, dateMs - nowMs);
}
