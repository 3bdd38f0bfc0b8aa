import type { Command } from 'commander';
import { findConfigFile } from '../../config/tree.ts';
import { startCommand, thisInstallation } from '../../installation.ts';
import { serverStatus } from '../../operations/server/server-status.ts';
import { toSafeJson } from '../../../client/core/safe-text.ts';
import { offlineSentence, findBlockersIfUnlocked, type OfflineStatus } from './offline-status.ts';
import { print, type CommandContext } from '../core/context.ts';
import { callServer, OtherVersionError } from '../core/control-client.ts';
import { configuredDataDir } from '../core/data-dir.ts';
import { exitCodes } from '../core/exit-codes.ts';
import { CommandError } from '../core/failure.ts';
import { configFlag, withExamples, withJson } from '../core/options.ts';
import type { LastRun } from '../../data-dir/server-state.ts';
import { offlineLines, statusLines, type Status } from './status-lines.ts';

const STATUS_TIMEOUT_MS = 3_000;

export function addStatus(program: Command, context: CommandContext): void {
  const statusCommand = program
    .command('status')
    .description('show the running server, its database and its deliveries on one screen; or why no server runs')
    .action(async ({ json }: { json?: boolean }, self: Command) => {
      await showStatus(context, configFlag(self), json === true);
    });
  withExamples(withJson(statusCommand), ['klatch status', 'klatch status --json']);
}

async function showStatus(context: CommandContext, configOption: string | undefined, json: boolean): Promise<void> {
  const dataDir = configuredDataDir(context, configOption);
  const status = await askStatus(dataDir);
  if ('version' in status) {
    const state = status.ready ? 'ready' : 'database away';
    print(context, ...(json ? [toSafeJson({ state, ...status }, 2)] : statusLines(status)));
    if (!status.ready) throw databaseDownError();
    return;
  }
  const file = findConfigFile({ configOption: configOption, env: context.env, programBinDir: context.programBinDir });
  const blockers = await findBlockersIfUnlocked(status, file, context.env);
  const { state, lockHolderPid: pid, lastRun } = status;
  const offlineReport = { state, ready: false, data_dir: dataDir, pid, last_run: lastRunAsJson(lastRun), blockers };
  print(context, ...(json ? [toSafeJson(offlineReport, 2)] : offlineLines(status, blockers)));
  throw offlineError(dataDir, status);
}

/**
 * Resolves to the status that the server reports, or to the reason why it does not answer. Rejects if this user may not
 * connect to the server, and if the answer is not understood.
 */
export async function askStatus(dataDir: string): Promise<Status | OfflineStatus> {
  try {
    return await callServer({ dataDir, operation: serverStatus, input: {}, timeoutMs: STATUS_TIMEOUT_MS });
  } catch (error) {
    const isAway = error instanceof CommandError && error.exitCode === exitCodes.unavailable;
    if (!isAway || error instanceof OtherVersionError) throw error;
    // Imported only here: a command that reaches a running server does not need this module.
    const { findOfflineStatus } = await import('./find-offline-status.ts');
    return findOfflineStatus(dataDir);
  }
}

function lastRunAsJson(lastRun: LastRun | null): object | null {
  if (lastRun === null) return null;
  const { lastSeenAt, ...stored } = lastRun;
  return { ...stored, last_seen_at: lastSeenAt.toISOString() };
}

/** The error for a server that answers while its database does not. */
export function databaseDownError(): CommandError {
  const sentence = 'the server runs, but its database does not answer: `klatch doctor` says why';
  return new CommandError(exitCodes.unavailable, sentence);
}

/** The error for a server that does not answer, if its start did not report a reason. */
export function offlineError(dataDir: string, offline: OfflineStatus): CommandError {
  const whichServer = `the Klatch with the data directory ${dataDir}`;
  if (['starting', 'stopping', 'unresponsive'].includes(offline.state)) {
    return new CommandError(exitCodes.unavailable, `${whichServer} is not ready: it ${describeOffline(offline)}`);
  }
  const sentence = `no Klatch runs with the data directory ${dataDir}: start it with \`${startCommand(thisInstallation())}\``;
  return new CommandError(exitCodes.unavailable, sentence);
}

function describeOffline(offline: OfflineStatus): string {
  const sentence = offlineSentence(offline);
  return offline.state === 'unresponsive' ? sentence : `is ${sentence}`;
}
