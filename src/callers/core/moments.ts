const ISO_PATTERN = /^(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?) ?(Z|[+-]\d{2}:?\d{2})?$/i;
/** Programs write moments before this one for "none": the year 1 of Go, the beginning of Unix time. */
const EARLIEST_MS = Date.UTC(1971, 0, 1);

/**
 * The moment that a text in ISO 8601 names, in UTC if it names no zone; null if it names no moment, or one before
 * EARLIEST_MS.
 */
export function momentOf(text: string): number | null {
  const match = text.length > 40 ? null : ISO_PATTERN.exec(text.trim());
  if (match === null) return null;
  const ms = Date.parse(`${match[1]!}T${match[2]!}${match[3]?.toUpperCase() ?? 'Z'}`);
  return Number.isNaN(ms) || ms < EARLIEST_MS ? null : ms;
}

const dayOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10);
const minuteOf = (ms: number): string => new Date(ms).toISOString().slice(11, 16);

/** Text such as `since 10:02 UTC`; empty for null. */
export function sinceText(ms: number | null): string {
  return ms === null ? '' : `since ${minuteOf(ms)} UTC`;
}

/** Text such as `since 2026-03-01 10:02 UTC`, without the day if that is today. */
export function sinceMomentText(ms: number, nowMs: number): string {
  const day = dayOf(ms) === dayOf(nowMs) ? '' : `${dayOf(ms)} `;
  return `since ${day}${minuteOf(ms)} UTC`;
}

/** Text such as `10:02 to 10:20 UTC`, with the days where they differ. Without a beginning, `until 10:20 UTC`. */
export function periodText(startMs: number | null, endMs: number | null): string {
  if (endMs === null) return sinceText(startMs);
  if (startMs === null) return `until ${minuteOf(endMs)} UTC`;
  const [start, end] = [minuteOf(startMs), minuteOf(endMs)];
  if (dayOf(startMs) === dayOf(endMs)) return start === end ? `at ${start} UTC` : `${start} to ${end} UTC`;
  return `${dayOf(startMs)} ${start} to ${dayOf(endMs)} ${end} UTC`;
}
