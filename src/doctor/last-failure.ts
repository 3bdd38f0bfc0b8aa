import { error, warning, type CheckResult } from './finding.ts';

/** The advice for a server that does not run, whatever the cause. */
export const START_ADVICE = 'Start it: "klatch serve", or the service that runs it.';

/** How the last run on a data directory failed. */
export interface LastFailure {
  /** The sentence that describes the failure, with its reason. */
  readonly found: string;
  /** The exit status of the run; null: not known. */
  readonly exitCode: number | null;
  readonly reason: string | null;
}

/** The causes of a failed run that still exist. */
interface PresentCauses {
  /** Results about the server's ports on which another program listens. */
  readonly takenPorts: readonly CheckResult[];
  /** The results about the database that prevent a start; null: they are not known, since the database does not run. */
  readonly databaseBlockers: readonly CheckResult[] | null;
}

/** Advice by the exit code (`cli/core/exit-codes.ts`) that the last run recorded. */
const ADVICE_BY_EXIT_CODE: ReadonlyMap<number | null, string> = new Map([
  [69, 'Put the database right, then start the server; docs/operations.md has what to do about each reason.'],
  [73, 'Put right what the reason names, as the user of the server, then start it.'],
  [76, 'Start the newer Klatch again, or do what the reason says.'],
  [77, 'Put the old value of `secret` back into server.conf, or move the database with "klatch keys rotate-secret".'],
]);

/**
 * The result about a failed run. It is an error while the cause of the failure exists or cannot be ruled out. It is a
 * warning with the advice to start the server if the cause is gone, or if the exit status has no advice of its own.
 */
export function evaluateLastFailure(failure: LastFailure, causes: PresentCauses): CheckResult {
  const { found, exitCode } = failure;
  const advice = ADVICE_BY_EXIT_CODE.get(exitCode);
  if (advice === undefined) return warning(found, `${START_ADVICE} Nothing committed is lost; its log has more.`);
  if (isCauseGone(failure, causes)) return warning(found, `Its cause is not there any more. ${START_ADVICE}`);
  const [port] = causes.takenPorts;
  return error(found, exitCode === 73 && port !== undefined ? port.todo! : advice);
}

function isCauseGone(
  { exitCode, reason }: LastFailure,
  { takenPorts: ports, databaseBlockers: database }: PresentCauses,
): boolean {
  // Exit status 73 has several causes, of which only a taken port can be checked again.
  if (exitCode === 73) return ports.length === 0 && (reason ?? '').startsWith('another program listens on ');
  return database?.length === 0;
}
