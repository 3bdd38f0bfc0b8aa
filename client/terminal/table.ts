import { sanitize } from '../core/safe-text.ts';

/** `key: value` lines with their values in one column; null is shown as `-`. */
export function formatFields(fields: readonly (readonly [string, string | number | boolean | null])[]): string[] {
  const width = Math.max(...fields.map(([key]) => key.length)) + 2;
  return fields.map(([key, value]) => `${`${key}:`.padEnd(width)}${value === null ? '-' : sanitize(String(value))}`);
}

/** A table with a heading; the last column is as wide as its text. */
export function formatTable(heading: readonly string[], rows: readonly (readonly (string | number)[])[]): string[] {
  const cells = [heading, ...rows].map((row) => row.map((cell) => sanitize(String(cell))));
  const widths = heading.map((_, column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)));
  return cells.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}

const DURATION_UNITS_WITH_SECONDS = [
  ['d', 86_400],
  ['h', 3_600],
  ['min', 60],
  ['s', 1],
] as const;

/** A duration in its two largest units, such as `3 d 4 h` or `12 s`. */
export function formatDuration(ms: number): string {
  let remainingSeconds = Math.max(0, Math.floor(ms / 1_000));
  const parts: string[] = [];
  for (const [unit, seconds] of DURATION_UNITS_WITH_SECONDS) {
    const count = Math.floor(remainingSeconds / seconds);
    remainingSeconds -= count * seconds;
    if (count > 0) parts.push(`${count} ${unit}`);
    else if (parts.length > 0) break;
  }
  return parts.slice(0, 2).join(' ') || '0 s';
}

/** How long ago a time was, such as `3 min 20 s ago`. */
export function ago(moment: string, nowMs: number): string {
  return `${formatDuration(nowMs - Date.parse(moment))} ago`;
}
