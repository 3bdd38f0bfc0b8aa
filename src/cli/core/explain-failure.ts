import { ConfigError, ConfigNotFoundError, NotConfiguredError } from '../../config/problem.ts';
import { StoreMismatchError } from '../../files/store-id.ts';
import { ListenError } from '../../listen.ts';
import { describeError } from '../../log.ts';
import { ControlFolderError } from '../../data-dir/control-socket-path.ts';
import { DataDirError, DataDirLockedError } from '../../data-dir/lock.ts';
import { DatabaseUnavailableError, CommitUnknownError } from '../../storage/db/database-error.ts';
import { EmbeddedError } from '../../storage/embedded/embedded-error.ts';
import { MigrationFailedError } from '../../storage/db/migrate.ts';
import { TransactionPoolingError } from '../../storage/db/pooler.ts';
import { IncompatibleSchemaError } from '../../storage/db/schema-compatibility.ts';
import { DatabaseInUseError } from '../../storage/rotate-secret.ts';
import { WrongSecretError } from '../../storage/db/sealed.ts';
import { DatabaseTooOldError, DatabaseUnsafeError } from '../../storage/db/server-version.ts';
import { ChatCommandError } from '../../../client/terminal/command-error.ts';
import { exitCodes, type ExitCode } from './exit-codes.ts';
import { CommandError, type CommandFailure } from './failure.ts';

type ErrorClass = abstract new (...args: never[]) => Error;

/** The errors that are not bugs of the program, with the exit status of the command. */
export const expectedFailures: readonly (readonly [ExitCode, readonly ErrorClass[]])[] = [
  [exitCodes.notConfigured, [NotConfiguredError, ConfigError, ConfigNotFoundError]],
  [exitCodes.dataDirInUse, [DataDirLockedError, DatabaseInUseError]],
  [exitCodes.incompatibleSchema, [IncompatibleSchemaError]],
  [exitCodes.notPermitted, [WrongSecretError, ControlFolderError]],
  [
    exitCodes.unavailable,
    [
      EmbeddedError,
      DatabaseUnavailableError,
      CommitUnknownError,
      DatabaseTooOldError,
      DatabaseUnsafeError,
      TransactionPoolingError,
    ],
  ],
  [exitCodes.internal, [MigrationFailedError]],
  [exitCodes.cannotCreate, [ListenError, DataDirError, StoreMismatchError]],
];

/**
 * The exit status and the text for an error that a command threw. An unexpected error counts as a bug, and its text has
 * the place in the code.
 */
export function explainFailure(error: unknown): CommandFailure {
  if (error instanceof CommandError) return { exitCode: error.exitCode, text: error.message };
  if (error instanceof ChatCommandError) return { exitCode: exitCodes[error.reason], text: error.message };
  const exitCode = expectedExitCode(error);
  if (exitCode !== null) return { exitCode, text: `${(error as Error).message}${failureHint(error)}` };
  if (isSystemError(error)) return { exitCode: exitCodes.cannotCreate, text: `The system refused: ${error.message}` };
  const { at } = describeError(error);
  const what = error instanceof Error ? `${error.name}: ${error.message}` : `${typeof error} thrown`;
  const text = `This is a defect of Klatch: ${what}${typeof at === 'string' ? ` (${at})` : ''}`;
  return { exitCode: exitCodes.internal, text };
}

/**
 * Advice for a person about this error. The error's message does not contain it, because programs read the message too.
 */
function failureHint(error: unknown): string {
  if (!(error instanceof DatabaseUnavailableError)) return '';
  return '. Check that PostgreSQL runs and that services.postgresql in server.conf leads to it.';
}

function expectedExitCode(error: unknown): ExitCode | null {
  return expectedFailures.find(([, kinds]) => kinds.some((kind) => error instanceof kind))?.[0] ?? null;
}

/** True if an error is from a system call. Its message has the system call and the path, so a person can act on it. */
function isSystemError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && 'syscall' in error && 'code' in error;
}
