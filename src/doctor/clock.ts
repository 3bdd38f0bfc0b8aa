import { error, ok, warning, type CheckResult } from './finding.ts';

/** A clock outside these bounds is wrong: before this program was written, or long after anybody still runs it. */
const EARLIEST_PLAUSIBLE_MS = Date.UTC(2026, 0, 1);
const LATEST_PLAUSIBLE_MS = Date.UTC(2100, 0, 1);
/**
 * From this offset on, the check warns: leases are compared with the database's clock and tolerate an offset of 2 s.
 */
export const CLOCK_OFFSET_WARNING_MS = 2_000;
/**
 * From this offset on, the check reports an error. Receivers refuse a signature whose time is 5 min off, so the error
 * comes early enough to act before that.
 */
export const CLOCK_OFFSET_ERROR_MS = 60_000;

const TODO = 'Set the clock, and let a time service (chrony, systemd-timesyncd) keep it, on both machines.';

/**
 * Checks this machine's clock, and its offset to the database's clock. `databaseAheadMs` null: the database did not
 * tell its time.
 */
export function evaluateClock(nowMs: number, databaseAheadMs: number | null): CheckResult {
  const now = new Date(nowMs).toISOString();
  if (nowMs < EARLIEST_PLAUSIBLE_MS || nowMs > LATEST_PLAUSIBLE_MS)
    return error(`the clock says ${now}, which cannot be`, TODO);
  if (databaseAheadMs === null) return ok(`${now}; the database's clock could not be asked`);
  const offsetMs = Math.abs(databaseAheadMs);
  const offsetText = `${(offsetMs / 1_000).toFixed(1)} s ${databaseAheadMs < 0 ? 'behind' : 'ahead of'} this machine's`;
  if (offsetMs >= CLOCK_OFFSET_ERROR_MS) return error(`the database's clock is ${offsetText}`, TODO);
  if (offsetMs >= CLOCK_OFFSET_WARNING_MS) return warning(`the database's clock is ${offsetText}`, TODO);
  return ok(`${now}; the database's clock agrees within ${offsetMs < 100 ? '0.1' : (offsetMs / 1_000).toFixed(1)} s`);
}
