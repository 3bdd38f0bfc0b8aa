import type { Stage } from '../stage.ts';

/** As the servers log that a new primary lacks changes that were acknowledged, or that nobody knows whether it does. */
const LOST_HISTORY = /history was lost|the epoch of the log was raised/;

/** What the servers of a stage have told of lost history, as a line of their log; null: nothing. */
export function reportedLoss(stage: Stage): string | null {
  const lines = stage.servers.flatMap(({ lines: logged }) => logged);
  return lines.find((line) => LOST_HISTORY.test(line)) ?? null;
}
