/** Milliseconds of the machine's monotonic clock (CLOCK_MONOTONIC): the same in all processes of a benchmark. */
export function machineMs(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1_000 + nanoseconds / 1e6;
}

/** Milliseconds since 1970, with their fraction. */
export function wallMs(): number {
  return performance.timeOrigin + performance.now();
}
