import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import * as z from 'zod';
import { selfExecCommand, RENAME_BACKUP_ARGUMENT, thisInstallation } from '../../installation.ts';
import { BackupError } from '../../storage/backup/format.ts';
import { inProcessFinalizer, type PartialFileFinalizer } from '../../storage/backup/partial-file.ts';
import type { CommandContext } from '../core/context.ts';

const OVERWRITE_WORD = 'overwrite';
/** The descriptor of the open file in the child. */
const BACKUP_DESCRIPTOR = 3;
const GIVE_FINAL_NAME_COMMAND = 'name\n';

/** The outcome that the child writes to its standard output before it exits. */
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
 * Starts a child that gives the backup file behind `descriptor` its final name. The child keeps root's rights, which
 * this process is about to give up. It opens no file and gets the path at its start, so an attacker who controls this
 * process can only make it name or remove that file. The child removes the file if this process dies.
 */
export function spawnPrivilegedFinalizer(descriptor: number, { path, overwrite }: RenameTarget): PartialFileFinalizer {
  const words = [RENAME_BACKUP_ARGUMENT, path, ...(overwrite ? [OVERWRITE_WORD] : [])];
  const { file, name, args } = selfExecCommand(thisInstallation(), process, words);
  const child = spawn(file, args, {
    argv0: name,
    // Ctrl-C at the terminal must reach only the backup process, which then has the file removed.
    detached: true,
    stdio: ['pipe', 'pipe', 'inherit', descriptor],
  });
  // The first `order` reports that the child could not be started. Without this handler, the rejection would end the
  // process.
  const ended = Promise.all([text(child.stdout!), once(child, 'close')]);
  ended.catch(() => {});
  // A write to a child that has exited fails; the outcome that the child reported tells why.
  child.stdin!.on('error', () => {});
  const order = async (command: string): Promise<void> => {
    child.stdin!.end(command);
    const [output] = await ended;
    const { error, isExpected } = finalizerOutcomeSchema.parse(JSON.parse(output));
    if (error === null) return;
    throw isExpected ? new BackupError(error.message) : Object.assign(new Error(error.message), error);
  };
  return { name: () => order(GIVE_FINAL_NAME_COMMAND), remove: () => order('') };
}

/**
 * The main function of the child. It is no command for people, so the command line's parser, help and completion do not
 * contain it.
 */
export async function finalizerChildMain(
  [, path = '', existing]: readonly string[],
  context: CommandContext,
): Promise<void> {
  const naming = inProcessFinalizer(BACKUP_DESCRIPTOR, { path, overwrite: existing === OVERWRITE_WORD });
  const order = await text(context.input);
  const outcome = await finalizerOutcomeOf(() => (order === GIVE_FINAL_NAME_COMMAND ? naming.name() : naming.remove()));
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
