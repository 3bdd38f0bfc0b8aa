import { constants, getPriority, setPriority } from 'node:os';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { exportConfiguration } from '../../config/export.ts';
import { loadConfig, type LoadedConfig } from '../../config/load.ts';
import { findConfigFile } from '../../config/tree.ts';
import type { BackupManifest } from '../../storage/backup/format.ts';
import { PartialFile } from '../../storage/backup/partial-file.ts';
import { acquireDatabaseForReading } from '../../storage/backup/connect.ts';
import { writeBackup, type ConfigurationFiles, type WrittenBackup } from '../../storage/backup/write.ts';
import { readVersion } from '../../version.ts';
import { toSafeJson } from '../../../client/core/safe-text.ts';
import { print, printError, type CommandContext } from '../core/context.ts';
import { exitCodes } from '../core/exit-codes.ts';
import { CommandError } from '../core/failure.ts';
import { describeRowsAndBytes, ProgressLine, runInterruptibly } from '../core/progress.ts';
import { spawnPrivilegedFinalizer } from './backup-rename.ts';
import { configFlag, withExamples, withJson } from '../core/options.ts';
import { dropPrivileges, dataDirOwnerIfRoot } from '../core/privileges.ts';

interface BackupOptions {
  readonly withSecrets?: boolean;
  readonly force?: boolean;
  readonly json?: boolean;
}

export function addBackup(program: Command, context: CommandContext): void {
  const backupCommand = program
    .command('backup')
    .description('write everything into one file, of one moment, whether the server runs or not')
    .argument('<file>', 'the file to make; - is standard output')
    .option('--with-secrets', 'the configuration as it is, with its secrets and private keys')
    .option('--force', 'overwrite a file that is there')
    .action(async (file: string, options: BackupOptions, self: Command) =>
      backup(context, { file, configPath: configFlag(self), options }),
    );
  withExamples(withJson(backupCommand), [
    'klatch backup /var/backups/klatch-$(date +%F).tar.gz',
    'klatch backup --with-secrets - | ssh backup.example.org "umask 077; cat > klatch.tar.gz"',
  ]);
}

async function backup(
  context: CommandContext,
  { file, configPath, options }: { file: string; configPath: string | undefined; options: BackupOptions },
): Promise<void> {
  const configFile = findConfigFile({
    configOption: configPath,
    env: context.env,
    programBinDir: context.programBinDir,
  });
  const loaded = loadConfig(configFile, { env: context.env });
  const path = file === '-' ? null : resolve(file);
  const writtenBackup = await runInterruptibly(context, (signal) =>
    writeToTarget(context, { loaded, path, options, signal }),
  );
  // If no path is given, the backup goes to standard output, so the report goes to standard error.
  const printReport = path === null ? printError : print;
  const report = { file: path, ...writtenBackup.header, rows: writtenBackup.manifest.rows };
  if (options.json === true) printReport(context, toSafeJson(report, 2));
  else printReport(context, ...reportLines(writtenBackup, path ?? 'standard output'));
}

interface BackupTask {
  readonly loaded: LoadedConfig;
  /** The file of the backup; null: standard output. */
  readonly path: string | null;
  readonly options: BackupOptions;
  readonly signal: AbortSignal;
}

async function writeToTarget(context: CommandContext, task: BackupTask): Promise<WrittenBackup> {
  const { loaded, path, options, signal } = task;
  const configuration = readConfiguration(context, loaded, options);
  // The file is created before the database is searched for, so that the command reports an existing file at once.
  const file = path === null ? null : await createPartialFile(path, { loaded, overwrite: options.force === true });
  dropPrivileges(loaded.config.dataDir);
  const progress = new ProgressLine(context);
  try {
    const database = await acquireDatabaseForReading(loaded.config, () => {});
    try {
      lowerPriority();
      const written = await writeBackup(database.target, file?.stream() ?? outputWithoutErrorHandler(context), {
        configuration,
        klatchVersion: readVersion(),
        onProgress: progress.show,
        signal,
      });
      await file?.finish();
      return written;
    } finally {
      await database.close();
    }
  } catch (error) {
    await file?.discard();
    if ((error as NodeJS.ErrnoException).code !== 'EPIPE') throw error;
    const sentence =
      'nobody reads standard output any more: what was written is no whole backup; remove it and repeat this';
    throw new CommandError(exitCodes.outputLost, sentence, { cause: error });
  } finally {
    progress.clear();
  }
}

/**
 * Creates the partial file of the backup. If root runs the command, also starts a child process that stays root and
 * gives the file its final name: this process will change to the owner of the data directory.
 */
async function createPartialFile(
  path: string,
  { loaded, overwrite }: { loaded: LoadedConfig; overwrite: boolean },
): Promise<PartialFile> {
  if (dataDirOwnerIfRoot(loaded.config.dataDir) === null) return PartialFile.create(path, { overwrite });
  return PartialFile.create(path, {
    overwrite,
    createPrivilegedFinalizer: (descriptor) => spawnPrivilegedFinalizer(descriptor, { path, overwrite }),
  });
}

/**
 * Standard output without the error handler that other commands have. For them a closed pipe is no failure, but an
 * incomplete backup is one.
 */
function outputWithoutErrorHandler({ output }: CommandContext): NodeJS.WriteStream {
  return output.removeAllListeners('error');
}

/**
 * Lowers the priority of this process, since the server must not slow down during a backup. Called after the start of
 * an embedded database, which would inherit the low priority.
 */
function lowerPriority(): void {
  // A process that was started with `nice` may have a lower priority, which only root may raise.
  const { PRIORITY_BELOW_NORMAL: wanted } = constants.priority;
  if (getPriority() < wanted) setPriority(wanted);
}

function readConfiguration(context: CommandContext, loaded: LoadedConfig, options: BackupOptions): ConfigurationFiles {
  const withSecrets = options.withSecrets === true;
  const { files, missing } = exportConfiguration(loaded, { env: context.env, secrets: withSecrets });
  return {
    record: {
      secrets: withSecrets,
      files: files.map(({ name, path, kind }) => ({ name, path, kind })),
      missing: [...missing],
    },
    configurationFileContents: new Map(files.map(({ name, content }) => [name, content])),
  };
}

function reportLines({ header, manifest }: WrittenBackup, destination: string): string[] {
  const { missing } = header.configuration;
  return [
    `Wrote ${describeTotalRowsAndBytes(manifest)} before compression to ${destination}.`,
    ...(missing.length === 0
      ? ['It holds the secrets of the configuration: keep it as safe as server.conf.']
      : ['Not in it, keep these elsewhere (or give --with-secrets):', ...missing.map((each) => `  ${each}`)]),
  ];
}

/** The total rows and bytes of a backup, such as "12,345 rows, 1.2 MiB". */
export function describeTotalRowsAndBytes({ rows, parts }: BackupManifest): string {
  const totalRows = Object.values(rows).reduce((sum, count) => sum + count, 0);
  const bytes = parts.reduce((sum, part) => sum + part.bytes, 0);
  return describeRowsAndBytes(totalRows, bytes);
}
