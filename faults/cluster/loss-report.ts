import type { Stage } from '../stage.ts';

/** Matches the log line by which a server reports that a new primary lacks acknowledged changes. */
const LOST_HISTORY = /history was lost/;
/** Matches that line, and the line for a possible loss, when another server did not answer in time. */
const POSSIBLY_LOST_HISTORY = /history was lost|the epoch of the log was raised/;

/** The log line in which a server of the stage reports lost or possibly lost history; null: there is none. */
export const reportedLoss = (stage: Stage): string | null => loggedLine(stage, POSSIBLY_LOST_HISTORY);

/** The log line in which a server reports lost history for certain; null: there is none. */
export const reportedCertainLoss = (stage: Stage): string | null => loggedLine(stage, LOST_HISTORY);

function loggedLine(stage: Stage, pattern: RegExp): string | null {
  const lines = stage.servers.flatMap(({ lines: logged }) => logged);
  return lines.find((line) => pattern.test(line)) ?? null;
}
