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
import { CommandError, type Failure } from './failure.ts';

type ErrorClass = abstract new (...args: never[]) => Error;

/** What can keep a command from its work without being a defect, with the status it ends with. */
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

/** The status and the sentences for whatever a command threw; what nobody expected is a defect, named by its place. */
export function explainFailure(error: unknown): Failure {
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

/** What to do about it, where the error itself, which is for programs too, does not say. */
function failureHint(error: unknown): string {
  if (!(error instanceof DatabaseUnavailableError)) return '';
  return '. Check that PostgreSQL runs and that services.postgresql in server.conf leads to it.';
}

function expectedExitCode(error: unknown): ExitCode | null {
  return expectedFailures.find(([, kinds]) => kinds.some((kind) => error instanceof kind))?.[0] ?? null;
}

/** An error of a system call names the call and the path: that is a sentence a person can act on. */
function isSystemError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && 'syscall' in error && 'code' in error;
}
