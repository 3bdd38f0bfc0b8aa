import type { Stage } from '../stage.ts';

/** As the servers log that a new primary lacks changes that were acknowledged. */
const LOST_HISTORY = /history was lost/;
/** The same, or that nobody knows whether it does: a server did not answer in time. */
const POSSIBLY_LOST_HISTORY = /history was lost|the epoch of the log was raised/;

/** What the servers of a stage have told of lost history, as a line of their log; null: nothing. */
export const reportedLoss = (stage: Stage): string | null => loggedLine(stage, POSSIBLY_LOST_HISTORY);

/** The same, without what they do as a precaution where a server does not answer in time. */
export const reportedCertainLoss = (stage: Stage): string | null => loggedLine(stage, LOST_HISTORY);

function loggedLine(stage: Stage, pattern: RegExp): string | null {
  const lines = stage.servers.flatMap(({ lines: logged }) => logged);
  return lines.find((line) => pattern.test(line)) ?? null;
}
