import { readFileSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import type { Command } from 'commander';
import { findConfigFile } from '../../config/tree.ts';
import type { Finding } from '../../doctor/finding.ts';
import { startIdOf, type LastRun } from '../../data-dir/server-state.ts';
import { findStartBlockers, type OfflineStatus } from './offline-status.ts';
import type { CommandContext } from '../core/context.ts';
import { OtherVersionError } from '../core/control-client.ts';
import { readDataDir } from '../core/data-dir.ts';
import { exitCodeMeanings, exitCodes, type ExitCode } from '../core/exit-codes.ts';
import { findOfflineStatus } from './find-offline-status.ts';
import { CommandError } from '../core/failure.ts';
import { configFlag, wholeNumber, withExamples } from '../core/options.ts';
import { offlineError, askStatus, databaseDownError } from './status.ts';
import type { Status } from './status-lines.ts';

const POLL_INTERVAL_MS = 200;
const MAX_WAIT_S = 3_600;
const MAX_PID = 4_194_304;
/**
 * After this time a zombie process counts as ended. A process that has ended is a zombie until its parent reads its
 * exit status.
 */
const ZOMBIE_GRACE_MS = 2_000;

/** Describes the start of a server that this command waits for. */
interface ReadinessWait {
  readonly context: CommandContext;
  /** The path of the configuration with which the server was started. */
  readonly configFile: string;
  readonly dataDir: string;
  readonly waitMs: number;
  /** The id of the process that has to become ready; null: any process that holds the data directory's lock. */
  readonly pid: number | null;
}

export function addReady(program: Command, context: CommandContext): void {
  const readyCommand = program
    .command('ready')
    .description(
      'end with 0 when the server can do its work, else with the reason and 69, or what its start ended with',
    )
    .option('--wait <seconds>', 'wait up to this long for it, or until it has failed', wholeNumber(0, MAX_WAIT_S), 0)
    .option('--pid <pid>', 'the process that was started: no other one counts', wholeNumber(1, MAX_PID))
    .action(async ({ wait: seconds, pid }: { wait: number; pid?: number }, self: Command) => {
      const file = findConfigFile({
        configOption: configFlag(self),
        env: context.env,
        programBinDir: context.programBinDir,
      });
      const dataDir = readDataDir(file, context.env);
      await waitUntilReady({ context, configFile: file, dataDir, waitMs: seconds * 1_000, pid: pid ?? null });
    });
  withExamples(readyCommand, ['klatch ready --wait 60']);
}

/**
 * Asks repeatedly until the server is ready. Rejects as soon as the start has failed; after `waitMs`, with the reason
 * why the server is not ready yet.
 */
async function waitUntilReady(awaited: ReadinessWait): Promise<void> {
  const deadline = performance.now() + awaited.waitMs;
  const started = awaited.pid === null ? null : new StartedProcess(awaited.pid);
  for (;;) {
    // Must be checked before the status is read: if the process is gone now, its record does not change any more.
    const isGone = started?.isGone() ?? false;
    const reason = await whyNotReady(awaited, isGone);
    if (reason === null) return;
    if (isGone || hasFailed(reason) || performance.now() >= deadline) throw reason;
    await wait(POLL_INTERVAL_MS);
  }
}

/** Thrown when the start of the server has failed, so that there is nothing to wait for. */
class StartFailure extends CommandError {}

const hasFailed = (reason: CommandError): boolean => reason instanceof StartFailure;

/**
 * Resolves to null if the server is ready, otherwise to the reason why it is not. Rejects with errors that do not go
 * away with time.
 */
async function whyNotReady(awaited: ReadinessWait, isGone: boolean): Promise<CommandError | null> {
  const answer = await askStatusOrOtherVersion(awaited.dataDir);
  if (answer instanceof CommandError) return isGone ? explainProcessEnd(awaited) : answer;
  if ('version' in answer) {
    if (awaited.pid === null || answer.pid === awaited.pid) return answer.ready ? null : databaseDownError();
    return isGone ? explainProcessEnd(awaited, answer.pid) : otherProcessError(awaited, answer.pid);
  }
  if (isGone) return explainProcessEnd(awaited, answer.lockHolderPid);
  return failureSinceWaiting(awaited, answer) ?? offlineError(awaited.dataDir, answer);
}

async function askStatusOrOtherVersion(dataDir: string): Promise<Status | OfflineStatus | CommandError> {
  try {
    return await askStatus(dataDir);
  } catch (error) {
    // Returned and not thrown, so that the caller continues to wait: a server of this version may be about to replace
    // the other one.
    if (error instanceof OtherVersionError) return error;
    throw error;
  }
}

/**
 * The failure of the last run, if that failed after this command was started. Null for an older failure, which says
 * nothing about the present start, and if the command waits for a particular process.
 */
function failureSinceWaiting({ pid }: ReadinessWait, { state, lastRun }: OfflineStatus): StartFailure | null {
  if (pid !== null || state !== 'failed' || Date.parse(lastRun!.since) < performance.timeOrigin) return null;
  return startFailureOf(lastRun!);
}

/**
 * Finds out why the process that this command waits for has ended. `holderPid`: the process that holds the data
 * directory's lock now; null: none or unknown.
 */
async function explainProcessEnd(awaited: ReadinessWait, holderPid: number | null = null): Promise<CommandError> {
  const { context, configFile: file, dataDir, pid } = awaited;
  const { lastRun } = await findOfflineStatus(dataDir);
  if (lastRun !== null && lastRun.pid === pid && lastRun.start_id === startIdOf(context.env)) {
    if (lastRun.state === 'failed') return withPortHoldersIfRoot(awaited, startFailureOf(lastRun));
    if (lastRun.state === 'stopped') {
      const by = lastRun.reason === null ? '' : ` by ${lastRun.reason}`;
      return new StartFailure(exitCodes.unavailable, `the server was stopped${by} before it was ready`);
    }
    return new StartFailure(exitCodes.unavailable, 'the server was killed before it was ready');
  }
  // The process ended before it wrote a record of its run.
  if (holderPid !== null) return otherProcessError(awaited, holderPid);
  const blockers = await findStartBlockers(file, context.env);
  if (blockers.length > 0) return blockedStartFailure(blockers);
  return new StartFailure(exitCodes.unavailable, 'the server has ended without a word; its log may say more');
}

function startFailureOf({ reason, exit_code }: LastRun): StartFailure {
  const exitCode = exit_code !== null && exit_code in exitCodeMeanings ? exit_code : exitCodes.unavailable;
  const text = reason ?? 'the server has failed; its log says more';
  return new StartFailure(exitCode as ExitCode, text);
}

/**
 * Adds the name of the program that uses the port, if root runs this command. The failed server itself could only name
 * the program's user.
 */
async function withPortHoldersIfRoot(
  { context, configFile: file }: ReadinessWait,
  failure: StartFailure,
): Promise<StartFailure> {
  if (failure.exitCode !== exitCodes.cannotCreate || process.geteuid?.() !== 0) return failure;
  const blockers = await findStartBlockers(file, context.env);
  const portFindings = blockers.filter(({ check }) => check === 'server');
  return portFindings.length === 0
    ? failure
    : new StartFailure(failure.exitCode, findingLines(portFindings).join('\n'));
}

function otherProcessError({ dataDir, pid }: ReadinessWait, holderPid: number | null): CommandError {
  const who = holderPid === null ? 'another process' : `another process (pid ${holderPid})`;
  const what = `the data directory ${dataDir} is in use by ${who}, not by the one that was started (pid ${pid}): stop the other first`;
  return new CommandError(exitCodes.dataDirInUse, what);
}

/**
 * The failure for problems that prevent the start. Its exit status is `notConfigured`, as for the server itself, if
 * only the configuration has problems; otherwise `unavailable`.
 */
function blockedStartFailure(blockers: readonly Finding[]): StartFailure {
  const isOnlyConfiguration = blockers.every(({ check }) => check === 'configuration');
  const exitCode = isOnlyConfiguration ? exitCodes.notConfigured : exitCodes.unavailable;
  return new StartFailure(exitCode, findingLines(blockers).join('\n'));
}

/** Lists the findings first, and then each piece of advice once, since several findings can have the same advice. */
function findingLines(blockers: readonly Finding[]): string[] {
  const todos = new Set(blockers.flatMap(({ todo }) => (todo === null ? [] : [`  -> ${todo}`])));
  return [...blockers.map(({ found }) => found), ...todos];
}

/** A process that another program has started, and that this command observes. */
class StartedProcess {
  readonly #pid: number;
  #zombieSinceMs: number | null = null;

  constructor(pid: number) {
    this.#pid = pid;
  }

  isGone(): boolean {
    const state = this.#readProcState();
    if (state !== 'Z') this.#zombieSinceMs = null;
    if (state === null) return true;
    if (state !== 'Z') return false;
    this.#zombieSinceMs ??= performance.now();
    return performance.now() - this.#zombieSinceMs >= ZOMBIE_GRACE_MS;
  }

  /** The kernel's letter for the state of the process; null: there is no such process. */
  #readProcState(): string | null {
    try {
      const stat = readFileSync(`/proc/${this.#pid}/stat`, 'latin1');
      return stat.slice(stat.lastIndexOf(')') + 2)[0] ?? null;
    } catch {
      return null;
    }
  }
}
