import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import * as z from 'zod';
import { selfExecCommand, RENAME_BACKUP_ARGUMENT, thisInstallation } from '../../installation.ts';
import { BackupError } from '../../storage/backup/format.ts';
import { inProcessFinalizer, type PartialFileFinalizer } from '../../storage/backup/partial-file.ts';
import type { CommandContext } from '../core/context.ts';

const OVERWRITE_WORD = 'overwrite';
/** The file descriptor of the open backup file in the child process. */
const BACKUP_DESCRIPTOR = 3;
const GIVE_FINAL_NAME_COMMAND = 'name\n';

/** The outcome that the child process writes to its standard output before it exits. */
const finalizerOutcomeSchema = z.object({
  error: z.object({ message: z.string(), code: z.string().optional(), syscall: z.string().optional() }).nullable(),
  isExpected: z.boolean(),
});
type FinalizerOutcome = z.infer<typeof finalizerOutcomeSchema>;

interface RenameTarget {
  readonly path: string;
  readonly overwrite: boolean;
}

/**
 * Starts a child process that gives the backup file behind `descriptor` its final name. The child keeps root's rights,
 * which this process is about to give up. The child opens no file, and gets the path at its start. So an attacker who
 * controls this process can only make the child rename or remove that file. The child removes the file if this process
 * dies.
 */
export function spawnPrivilegedFinalizer(descriptor: number, { path, overwrite }: RenameTarget): PartialFileFinalizer {
  const childArguments = [RENAME_BACKUP_ARGUMENT, path, ...(overwrite ? [OVERWRITE_WORD] : [])];
  const { file, name, args } = selfExecCommand(thisInstallation(), process, childArguments);
  const child = spawn(file, args, {
    argv0: name,
    // Ctrl-C at the terminal must not reach the child: the backup process gets it, and then orders the child to remove
    // the file.
    detached: true,
    stdio: ['pipe', 'pipe', 'inherit', descriptor],
  });
  // If the child cannot be started, the first call of `command` reports it. Until then this handler prevents an
  // unhandled unhandled rejection, which would end the process.
  const outputAndClose = Promise.all([text(child.stdout!), once(child, 'close')]);
  outputAndClose.catch(() => {});
  // A write to a child that has exited fails. The error is ignored, since the outcome that the child reported has the
  // reason.
  child.stdin!.on('error', () => {});
  const sendCommand = async (command: string): Promise<void> => {
    child.stdin!.end(command);
    const [output] = await outputAndClose;
    const { error, isExpected } = finalizerOutcomeSchema.parse(JSON.parse(output));
    if (error === null) return;
    throw isExpected ? new BackupError(error.message) : Object.assign(new Error(error.message), error);
  };
  return { giveFinalName: () => sendCommand(GIVE_FINAL_NAME_COMMAND), remove: () => sendCommand('') };
}

/**
 * The main function of the child process. It is no command for people, so the command line's parser, help and
 * completion do not know it.
 */
export async function finalizerChildMain(
  [, path = '', existing]: readonly string[],
  context: CommandContext,
): Promise<void> {
  const finalizer = inProcessFinalizer(BACKUP_DESCRIPTOR, { path, overwrite: existing === OVERWRITE_WORD });
  const command = await text(context.input);
  const outcome = await finalizerOutcomeOf(() =>
    command === GIVE_FINAL_NAME_COMMAND ? finalizer.giveFinalName() : finalizer.remove(),
  );
  context.output.write(JSON.stringify(outcome));
}

async function finalizerOutcomeOf(work: () => Promise<void>): Promise<FinalizerOutcome> {
  try {
    await work();
    return { error: null, isExpected: true };
  } catch (error) {
    const { message, code, syscall } = error as NodeJS.ErrnoException;
    return { error: { message, code, syscall }, isExpected: error instanceof BackupError };
  }
}
