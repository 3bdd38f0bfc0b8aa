import { basename, dirname, join, resolve } from 'node:path';

/** What the running program tells of itself. */
interface ProgramFacts {
  /** process.execPath: the program itself, or the Node that runs its sources. */
  readonly execPath: string;
  /** KLATCH_LAUNCHER: the script that the release archive is started with. */
  readonly archiveLauncher: string | undefined;
}

/** How this Klatch came onto the machine. People are told different commands for each. */
export interface Installation {
  readonly kind: 'package' | 'archive' | 'source';
  /** What a person types to run it: `klatch`, or the path of the archive's launcher. */
  readonly command: string;
  /** Where the companion's PostgreSQL programs stand, if they are installed. */
  readonly companionPostgresqlPackageBinDir: string;
}

/** Looks at names only: the program of the package is not called node, and the archive's launcher names itself. */
export function describeInstallation({ execPath, archiveLauncher }: ProgramFacts): Installation {
  if (archiveLauncher !== undefined && archiveLauncher !== '') {
    const command = resolve(archiveLauncher);
    const companionPostgresqlPackageBinDir = join(dirname(dirname(command)), 'postgresql/bin');
    return { kind: 'archive', command, companionPostgresqlPackageBinDir };
  }
  const companionPostgresqlPackageBinDir = join(dirname(execPath), 'postgresql/bin');
  const kind = basename(execPath).startsWith('node') ? 'source' : 'package';
  return { kind, command: 'klatch', companionPostgresqlPackageBinDir };
}

/** What a person types to start the server. */
export function startCommand({ kind, command }: Installation): string {
  return kind === 'package' ? 'sudo service klatch start' : `${command} serve`;
}

/** The installation of this very process. */
export function thisInstallation(): Installation {
  return describeInstallation({ execPath: process.execPath, archiveLauncher: process.env['KLATCH_LAUNCHER'] });
}

/** The first word of the command line of a child that names a backup with root's rights; no command for people. */
export const RENAME_BACKUP_ARGUMENT = '--name-backup';

/** How a process of this program was started; `process` has it. */
export interface ProgramStart {
  readonly argv: readonly string[];
  readonly execArgv: readonly string[];
  readonly execPath: string;
}

/** How to run this program once more with other arguments; `name` is what it is called in lists of processes. */
export function selfExecCommand(
  { kind, command }: Installation,
  { argv, execArgv, execPath }: ProgramStart,
  args: readonly string[],
): { readonly file: string; readonly name: string; readonly args: readonly string[] } {
  if (kind === 'source') return { file: execPath, name: 'klatch', args: [...execArgv, argv[1]!, ...args] };
  if (kind === 'package') return { file: execPath, name: 'klatch', args };
  // Not the program itself, which is started by a loader.
  return { file: command, name: command, args };
}

/** What to do, as the end of a sentence, to get the private PostgreSQL programs where none were found. */
export function howToGetPostgresqlPrograms({ kind, companionPostgresqlPackageBinDir }: Installation): string {
  if (kind === 'package') return 'Install them with "sudo apt-get install klatch-postgresql"';
  if (kind === 'source') return 'Install them with "make install" in the source tree';
  return `Unpack klatch-postgresql-<version>-linux-x64.zip so that its programs stand in ${companionPostgresqlPackageBinDir}`;
}
