const timeFormat = new Intl.DateTimeFormat(undefined, { hour: 'numeric', minute: '2-digit' });
const dayFormat = new Intl.DateTimeFormat(undefined, {
  weekday: 'long',
  day: 'numeric',
  month: 'long',
  year: 'numeric',
});
const momentFormat = new Intl.DateTimeFormat(undefined, { dateStyle: 'full', timeStyle: 'medium' });
const dateFormat = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium' });
const shortMomentFormat = new Intl.DateTimeFormat(undefined, {
  day: 'numeric',
  month: 'short',
  hour: 'numeric',
  minute: '2-digit',
});
const shortDayFormat = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short' });

/** The time of day of a moment (ISO 8601), as people write it in the language of the browser. */
export function timeOfDay(iso: string): string {
  return formatted(timeFormat, iso);
}

/** The time of day without AM and PM, for narrow places. */
export function clockTimeOf(iso: string): string {
  const at = new Date(iso);
  if (Number.isNaN(at.getTime())) return '';
  const parts = timeFormat.formatToParts(at).filter(({ type }) => type !== 'dayPeriod');
  return parts
    .map(({ value }) => value)
    .join('')
    .trim();
}

/** The day of a moment with its weekday, month and year, in full words. */
export function dayOf(iso: string): string {
  return formatted(dayFormat, iso);
}

/** The date in full words and the time of a moment, with its seconds. */
export function momentOf(iso: string): string {
  return formatted(momentFormat, iso);
}

/** The day of a moment with its year, in a short form. */
export function dateOf(iso: string): string {
  return formatted(dateFormat, iso);
}

/** The time of day of a moment if it is today, otherwise its day. */
export function briefMomentOf(iso: string, now = new Date()): string {
  return isSameDay(iso, now.toISOString()) ? timeOfDay(iso) : formatted(shortDayFormat, iso);
}

/** The time of day of a moment; if it is not today, with its day before it. */
export function shortMomentOf(iso: string, now = new Date()): string {
  return isSameDay(iso, now.toISOString()) ? timeOfDay(iso) : formatted(shortMomentFormat, iso);
}

/** Whether two moments are on the same day in the browser's time zone. */
export function isSameDay(a: string, b: string): boolean {
  return new Date(a).toDateString() === new Date(b).toDateString();
}

function formatted(format: Intl.DateTimeFormat, iso: string): string {
  const at = new Date(iso);
  return Number.isNaN(at.getTime()) ? '' : format.format(at);
}
