import type { Command } from 'commander';
import { findConfigFile } from '../../config/tree.ts';
import { ConfigError, NotConfiguredError } from '../../config/problem.ts';
import { runChecks } from '../../doctor/run-checks.ts';
import {
  countWithNoun,
  error as failed,
  skipped,
  warning,
  type Finding,
  type Level,
  type CheckResult,
} from '../../doctor/finding.ts';
import { START_ADVICE } from '../../doctor/last-failure.ts';
import type { ServerAnswer, ServerUnreachable } from '../../doctor/server.ts';
import { serverStatus } from '../../operations/server/server-status.ts';
import { readVersion } from '../../version.ts';
import { offlineSentence, isDataDirUnlocked, type OfflineStatus } from './offline-status.ts';
import { type CommandContext, print, printJson } from '../core/context.ts';
import { callServer, OtherVersionError } from '../core/control-client.ts';
import { readDataDir } from '../core/data-dir.ts';
import { exitCodes } from '../core/exit-codes.ts';
import { findOfflineStatus } from './find-offline-status.ts';
import { CommandError } from '../core/failure.ts';
import { replaceControlCharacters } from '../../../client/core/safe-text.ts';
import { configFlag, withExamples, withJson } from '../core/options.ts';

const STATUS_TIMEOUT_MS = 5_000;
const LEVEL_LABELS: Readonly<Record<Level, string>> = { ok: 'ok', warning: 'warning', error: 'ERROR', skipped: '-' };

export function addDoctor(program: Command, context: CommandContext): void {
  const doctorCommand = program
    .command('doctor')
    .description('look at everything the server depends on, running or not, and say what to do; it changes nothing')
    .action(async ({ json }: { json?: boolean }, self: Command) => {
      const file = findConfigFile({
        configOption: configFlag(self),
        env: context.env,
        programBinDir: context.programBinDir,
      });
      const { env } = context;
      const findings = await runChecks({
        configFile: file,
        env,
        dataDir: findDataDir(file, env),
        version: readVersion(),
        askServer,
      });
      const errors = findings.filter(({ level }) => level === 'error').length;
      const warnings = findings.filter(({ level }) => level === 'warning').length;
      if (json === true) printJson(context, { ok: errors === 0, errors, warnings, findings });
      else print(context, ...findingLines(findings), '', countsSummary(errors, warnings));
      if (errors > 0)
        throw new CommandError(exitCodes.operationFailed, `doctor found ${countWithNoun(errors, 'error')}`);
    });
  withExamples(withJson(doctorCommand), ['klatch doctor', 'klatch doctor --json']);
}

function findDataDir(configFile: string, env: CommandContext['env']): string | null {
  try {
    return readDataDir(configFile, env);
  } catch (cause) {
    // A problem of the configuration is ignored here: the check of the configuration reports it.
    if (cause instanceof ConfigError || cause instanceof NotConfiguredError) return null;
    throw cause;
  }
}

async function askServer(dataDir: string): Promise<ServerAnswer> {
  try {
    const status = await callServer({ dataDir, operation: serverStatus, input: {}, timeoutMs: STATUS_TIMEOUT_MS });
    const { version, pid, ready, started_at, loops } = status;
    return { version, pid, ready, startedAt: new Date(started_at), loops };
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    if (error.exitCode !== exitCodes.unavailable || error instanceof OtherVersionError) {
      const unreachableResult = failed(error.message, 'The rest of these findings holds all the same.');
      return { unreachableResult, isDataDirUnlocked: false, failure: null };
    }
    return describeUnreachable(await findOfflineStatus(dataDir));
  }
}

/**
 * Describes why the server cannot be reached. Only a failed start counts as a failure; a server that was stopped or
 * never started is no problem.
 */
function describeUnreachable(offline: OfflineStatus): ServerUnreachable {
  const { state, lastRun } = offline;
  const found = offlineSentence(offline);
  const failure =
    state === 'failed' && lastRun !== null ? { found, exitCode: lastRun.exit_code, reason: lastRun.reason } : null;
  return {
    unreachableResult: evaluateOfflineState(offline, found),
    isDataDirUnlocked: isDataDirUnlocked(offline),
    failure,
  };
}

function evaluateOfflineState({ state }: OfflineStatus, sentence: string): CheckResult {
  if (state === 'stopped' || state === 'never started') return skipped(sentence);
  if (state === 'unresponsive') return failed(sentence, 'Look into the log of the server; if it hangs, restart it.');
  if (state === 'killed') return warning(sentence, START_ADVICE);
  if (state === 'failed') return warning(sentence, 'Put right what is said here, then start it.');
  if (state === 'locked') return warning(sentence, 'Start the server when that process has ended.');
  return warning(sentence, 'Wait with "klatch ready --wait 60"; if it stays, look into the log of the server.');
}

/** One line for each finding of `klatch doctor`, followed by a line that says what to do. */
function findingLines(findings: readonly Finding[]): string[] {
  const levelWidth = Math.max(...Object.values(LEVEL_LABELS).map((word) => word.length));
  const checkWidth = Math.max(...findings.map(({ check }) => check.length));
  return findings.flatMap(({ check, level, found, todo }) => {
    const prefix = `${LEVEL_LABELS[level].padEnd(levelWidth)}  ${check.padEnd(checkWidth)}  `;
    const advice = todo === null ? [] : [`${' '.repeat(prefix.length)}-> ${replaceControlCharacters(todo)}`];
    return [`${prefix}${replaceControlCharacters(found)}`, ...advice];
  });
}

function countsSummary(errors: number, warnings: number): string {
  if (errors === 0 && warnings === 0) return 'Nothing is wrong.';
  return `${errors === 0 ? 'No errors' : countWithNoun(errors, 'error')}, ${countWithNoun(warnings, 'warning')}.`;
}
