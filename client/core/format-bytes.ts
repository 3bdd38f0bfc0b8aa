const BYTE_UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const;

/** Returns a number of bytes as text, such as `12 KiB` or `1.5 MiB`. */
export function formatBytes(bytes: number): string {
  let [value, unit] = [bytes, 0];
  for (; value >= 1_023.5 && unit < BYTE_UNITS.length - 1; unit += 1) value /= 1_024;
  return `${unit === 0 || value >= 9.95 ? Math.round(value) : value.toFixed(1)} ${BYTE_UNITS[unit]!}`;
}
