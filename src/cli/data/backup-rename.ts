import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import * as z from 'zod';
import { selfExecCommand, RENAME_BACKUP_ARGUMENT, thisInstallation } from '../../installation.ts';
import { BackupError } from '../../storage/backup/format.ts';
import { inProcessFinalizer, type PartialFileFinalizer } from '../../storage/backup/partial-file.ts';
import type { CommandContext } from '../core/context.ts';

const OVERWRITE_WORD = 'overwrite';
/** Where the child has the open file. */
const BACKUP_DESCRIPTOR = 3;
const GIVE_FINAL_NAME_COMMAND = 'name\n';

/** What the child says at its end. */
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
 * Names the file of a descriptor with root's rights, which this process is about to give up: a child keeps them. It
 * opens nothing and knows the path from the beginning, so that whoever gets hold of this process can make it give the
 * file its name or remove it, and nothing else. It removes the file when this process dies.
 */
export function spawnPrivilegedFinalizer(descriptor: number, { path, overwrite }: RenameTarget): PartialFileFinalizer {
  const words = [RENAME_BACKUP_ARGUMENT, path, ...(overwrite ? [OVERWRITE_WORD] : [])];
  const { file, name, args } = selfExecCommand(thisInstallation(), process, words);
  const child = spawn(file, args, {
    argv0: name,
    // Ctrl-C at the terminal is for the backup, which then has the file removed.
    detached: true,
    stdio: ['pipe', 'pipe', 'inherit', descriptor],
  });
  // Whether it started is asked when it is needed; an error without a listener would end the process.
  const ended = Promise.all([text(child.stdout!), once(child, 'close')]);
  ended.catch(() => {});
  // A child that has ended takes no order; its outcome says why.
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

/** The child's side. It is no command for people, so the parser of command lines, help and completion do not know it. */
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
