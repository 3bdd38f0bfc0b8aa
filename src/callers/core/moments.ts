const ISO_PATTERN = /^(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?) ?(Z|[+-]\d{2}:?\d{2})?$/i;
/** A time before this one means "none": programs send the year 1 (Go) or the beginning of Unix time for it. */
const EARLIEST_MS = Date.UTC(1971, 0, 1);

/**
 * Parses a time in ISO 8601 into Unix milliseconds; without a time zone, it is in UTC. Null if the text is no such
 * time, or names one before EARLIEST_MS.
 */
export function momentOf(text: string): number | null {
  const match = text.length > 40 ? null : ISO_PATTERN.exec(text.trim());
  if (match === null) return null;
  const ms = Date.parse(`${match[1]!}T${match[2]!}${match[3]?.toUpperCase() ?? 'Z'}`);
  return Number.isNaN(ms) || ms < EARLIEST_MS ? null : ms;
}

const dayOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10);
const minuteOf = (ms: number): string => new Date(ms).toISOString().slice(11, 16);

/** A text such as `since 10:02 UTC`; empty for null. */
export function sinceText(ms: number | null): string {
  return ms === null ? '' : `since ${minuteOf(ms)} UTC`;
}

/** A text such as `since 2026-03-01 10:02 UTC`, or `since 10:02 UTC` if the day is the same as that of `nowMs`. */
export function sinceMomentText(ms: number, nowMs: number): string {
  const day = dayOf(ms) === dayOf(nowMs) ? '' : `${dayOf(ms)} `;
  return `since ${day}${minuteOf(ms)} UTC`;
}

/** A text such as `10:02 to 10:20 UTC`, with the dates if they differ; without a start, `until 10:20 UTC`. */
export function periodText(startMs: number | null, endMs: number | null): string {
  if (endMs === null) return sinceText(startMs);
  if (startMs === null) return `until ${minuteOf(endMs)} UTC`;
  const [start, end] = [minuteOf(startMs), minuteOf(endMs)];
  if (dayOf(startMs) === dayOf(endMs)) return start === end ? `at ${start} UTC` : `${start} to ${end} UTC`;
  return `${dayOf(startMs)} ${start} to ${dayOf(endMs)} ${end} UTC`;
}
