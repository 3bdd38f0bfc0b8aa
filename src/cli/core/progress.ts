import type { CopyProgress } from '../../storage/backup/write.ts';
import { BackupError } from '../../storage/backup/format.ts';
import { printError, type CommandContext } from './context.ts';
import { exitCodes } from './exit-codes.ts';
import { CommandError } from './failure.ts';
import { StopSignals } from './stop-signals.ts';

const PROGRESS_INTERVAL_MS = 200;
const KIB = 1024;
const MIB = 1024 * KIB;

/** The abort reason when a stop signal ends long work. */
class InterruptedError extends Error {
  override readonly name = 'InterruptedError';
}

/**
 * Runs work that a stop signal (such as Ctrl-C) may abort at any time. The work must then clean up and reject, and the
 * process ends by that signal. A BackupError becomes a CommandError with the same sentence.
 */
export async function runInterruptibly<T>(
  context: CommandContext,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  let stopSignal: NodeJS.Signals | null = null;
  const signals = new StopSignals(() => process.exit(exitCodes.internal));
  void signals.firstSignal.then((signal) => {
    stopSignal = signal;
    controller.abort(new InterruptedError(`ended by ${signal}`));
  });
  signals.start();
  try {
    return await work(controller.signal);
  } catch (error) {
    if (stopSignal !== null) killSelfBySignal(context, stopSignal, signals);
    if (error instanceof BackupError)
      throw new CommandError(exitCodes.operationFailed, error.message, { cause: error });
    throw error;
  } finally {
    signals.stop();
  }
}

function killSelfBySignal(context: CommandContext, signal: NodeJS.Signals, signals: StopSignals): void {
  printError(context, `klatch: ended by ${signal}; nothing was left behind`);
  signals.stop();
  process.kill(process.pid, signal);
}

/**
 * Shows the progress of a copy in one line of the terminal, which is overwritten each time. Shows nothing if standard
 * error is no terminal.
 */
export class ProgressLine {
  readonly #context: CommandContext;
  #shownAtMs = 0;
  #isShown = false;

  constructor(context: CommandContext) {
    this.#context = context;
  }

  readonly show = ({ table, rows, bytes }: CopyProgress): void => {
    const nowMs = performance.now();
    if (!this.#context.errorOutput.isTTY || nowMs - this.#shownAtMs < PROGRESS_INTERVAL_MS) return;
    this.#shownAtMs = nowMs;
    this.#isShown = true;
    this.#context.errorOutput.write(`\r\u001b[K${table}: ${describeRowsAndBytes(rows, bytes)}`);
  };

  /** Erases the line from the terminal. */
  clear(): void {
    if (this.#isShown) this.#context.errorOutput.write('\r\u001b[K');
    this.#isShown = false;
  }
}

/** Formats a number of rows and bytes for people, such as "12,345 rows, 1.2 MiB". */
export function describeRowsAndBytes(rows: number, bytes: number): string {
  const size = bytes < MIB ? `${(bytes / KIB).toFixed(1)} KiB` : `${(bytes / MIB).toFixed(1)} MiB`;
  return `${describeRows(rows)}, ${size}`;
}

export function describeRows(rows: number): string {
  return `${rows.toLocaleString('en-US')} row${rows === 1 ? '' : 's'}`;
}
