import { basename, dirname, join, resolve } from 'node:path';

/** The facts about the running program that identify its installation. */
interface ProgramFacts {
  /** `process.execPath`: the path of the program itself, or of the Node.js that runs its sources. */
  readonly execPath: string;
  /**
   * The environment variable KLATCH_LAUNCHER: the path of the script that starts the program in the release archive.
   */
  readonly archiveLauncher: string | undefined;
}

/** How this Klatch was installed. The commands in messages to people depend on it. */
export interface Installation {
  readonly kind: 'package' | 'archive' | 'source';
  /** The command that runs Klatch: `klatch`, or the path of the archive's launcher. */
  readonly command: string;
  /**
   * The folder in which the package klatch-postgresql installs the PostgreSQL programs. It exists only if that package
   * is installed.
   */
  readonly companionPostgresqlPackageBinDir: string;
}

/**
 * Determines the kind of installation by names only: the package's program is not called node, and the archive's
 * launcher sets KLATCH_LAUNCHER.
 */
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

/** The command with which a person starts the server. */
export function startCommand({ kind, command }: Installation): string {
  return kind === 'package' ? 'sudo service klatch start' : `${command} serve`;
}

export function thisInstallation(): Installation {
  return describeInstallation({ execPath: process.execPath, archiveLauncher: process.env['KLATCH_LAUNCHER'] });
}

/**
 * The first argument of a child process that gives a backup its final name with root's rights. It is no command for
 * people.
 */
export const RENAME_BACKUP_ARGUMENT = '--name-backup';

/** How a process of this program was started. The global `process` has these fields. */
export interface ProgramStart {
  readonly argv: readonly string[];
  readonly execArgv: readonly string[];
  readonly execPath: string;
}

/**
 * The file and the arguments with which this program can be run again, with other arguments. `name`: the program's name
 * in the process list.
 */
export function selfExecCommand(
  { kind, command }: Installation,
  { argv, execArgv, execPath }: ProgramStart,
  args: readonly string[],
): { readonly file: string; readonly name: string; readonly args: readonly string[] } {
  if (kind === 'source') return { file: execPath, name: 'klatch', args: [...execArgv, argv[1]!, ...args] };
  if (kind === 'package') return { file: execPath, name: 'klatch', args };
  // The launcher is run and not `execPath`, since the launcher starts the program by a loader.
  return { file: command, name: command, args };
}

/**
 * Says how to install the programs of the embedded PostgreSQL, for the end of an error message that none were found.
 */
export function howToGetPostgresqlPrograms({ kind, companionPostgresqlPackageBinDir }: Installation): string {
  if (kind === 'package') return 'Install them with "sudo apt-get install klatch-postgresql"';
  if (kind === 'source') return 'Install them with "make install" in the source tree';
  return `Unpack klatch-postgresql-<version>-linux-x64.zip so that its programs stand in ${companionPostgresqlPackageBinDir}`;
}
