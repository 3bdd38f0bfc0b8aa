import { constants } from 'node:os';
import type { Command } from 'commander';
import { loadConfig } from '../config/load.ts';
import { findConfigFile } from '../config/tree.ts';
import { thisInstallation } from '../installation.ts';
import { createLog, type Log } from '../log.ts';
import type { Server } from '../server.ts';
import { printError, type CommandContext } from './core/context.ts';
import { exitCodes } from './core/exit-codes.ts';
import { explainFailure } from './core/explain-failure.ts';
import { restartServerWithHeapLimit, type ReplaceableServerProcess } from './setup/heap.ts';
import { configFlag, withExamples } from './core/options.ts';
import { refuseRootWithServiceConfig } from './core/privileges.ts';
import { StopSignals } from './core/stop-signals.ts';

export function addServe(program: Command, context: CommandContext): void {
  const serveCommand = program
    .command('serve')
    .description('run the server until it is told to stop (this is what klatch does without a command)')
    .action(async (_, self: Command) => serve(context, configFlag(self)));
  withExamples(serveCommand, ['klatch serve', 'klatch serve --config ./server.conf']);
}

/**
 * Runs the server until SIGTERM or SIGINT. Resolves when it has stopped cleanly. Rejects when it cannot start or
 * continue.
 */
export async function serve(context: CommandContext, configOption: string | undefined): Promise<void> {
  // This log is used until the configuration is read, which sets the log's level and format.
  let log = createLog({ level: 'info', format: 'auto' });
  let server: Server | null = null;
  exitOnCrash(context, { log: () => log, server: () => server });
  const signals = new StopSignals((signal) => exitOnSecondSignal(context, signal, server));
  try {
    const file = findConfigFile({ configOption: configOption, env: context.env, programBinDir: context.programBinDir });
    refuseRootWithServiceConfig(file, process.geteuid?.());
    const { config, warnings } = loadConfig(file, { env: context.env });
    restartServerWithHeapLimit(config.heapBytes, thisInstallation(), process as ReplaceableServerProcess);
    log = createLog(config.log);
    for (const warning of warnings) log.warn('configuration warning', { warning });
    signals.start();
    // Imported only here: the server is two thirds of the code, which the other commands need not load.
    const { Server } = await import('../server.ts');
    server = new Server(config, log, exitReasonOf);
    await startAndRunUntilStopped(server, signals, log);
  } catch (error) {
    // On a terminal the caller prints the failure on standard error, right below the log. Then the failure is not
    // logged too.
    const isShownTwice = process.stdout.isTTY && context.errorOutput.isTTY;
    const { exitCode, text } = explainFailure(error);
    const causeFields = exitCode === exitCodes.internal ? { error } : { reason: text };
    if (!isShownTwice) log.error('cannot run', { exitCode, ...causeFields });
    throw error;
  } finally {
    signals.stop();
  }
}

async function startAndRunUntilStopped(server: Server, signals: StopSignals, log: Log): Promise<void> {
  const starting = server.start();
  const earlySignal = await Promise.race([starting.then(() => null), signals.firstSignal]);
  const stopCause = earlySignal ?? (await Promise.race([signals.firstSignal, server.failure]));
  log.info('stopping', stopCause instanceof Error ? { reason: stopCause.message } : { signal: stopCause });
  await server.stop(stopCause instanceof Error ? null : stopCause);
  log.info('stopped');
  if (stopCause instanceof Error) throw stopCause;
}

function exitReasonOf(error: unknown): { reason: string; exitCode: number } {
  const { exitCode, text } = explainFailure(error);
  return { exitCode, reason: text };
}

function exitOnSecondSignal(context: CommandContext, signal: NodeJS.Signals, server: Server | null): never {
  const exitCode = 128 + constants.signals[signal];
  server?.recordExitAtOnce({ reason: `stopped at once by a second ${signal}`, exitCode });
  printError(
    context,
    `klatch: stopped at once by a second ${signal}; the next start goes on from what the database has`,
  );
  process.exit(exitCode);
}

/**
 * Ends the process after an uncaught error, since its state is then unknown. No committed data is lost: it is in the
 * database.
 */
function exitOnCrash(context: CommandContext, current: { log: () => Log; server: () => Server | null }): void {
  const exitAfterCrash = (error: unknown): void => {
    try {
      current.log().error('crashed', { error });
      current.server()?.recordExitAtOnce(exitReasonOf(error));
      printError(context, `klatch: ${explainFailure(error).text}`);
    } finally {
      process.exit(exitCodes.internal);
    }
  };
  process.on('uncaughtException', exitAfterCrash);
  process.on('unhandledRejection', exitAfterCrash);
}
