import { createReadStream } from 'node:fs';
import { open as openFile, type FileHandle } from 'node:fs/promises';
import { resolve } from 'node:path';
import { addAbortSignal, Readable } from 'node:stream';
import type { Command } from 'commander';
import type { Config } from '../../config/config.ts';
import { writeConfigurationFiles } from '../../config/export.ts';
import { loadConfig } from '../../config/load.ts';
import { findConfigFile } from '../../config/tree.ts';
import { readRestoredEpoch, writeRestoredEpoch } from '../../data-dir/restored-epoch.ts';
import { BackupError, type BackupHeader } from '../../storage/backup/format.ts';
import { checkBackupSchema, loadDatabase, type DatabaseLoadResult } from '../../storage/backup/load.ts';
import { acquireDatabaseForLoading } from '../../storage/backup/connect.ts';
import { readBackup, type ReadBackupResult } from '../../storage/backup/read.ts';
import { Sealer } from '../../storage/db/sealed.ts';
import { describeTotalRowsAndBytes } from './backup.ts';
import { type CommandContext, print, printJson } from '../core/context.ts';
import { exitCodes } from '../core/exit-codes.ts';
import { CommandError } from '../core/failure.ts';
import { replaceControlCharacters } from '../../../client/core/safe-text.ts';
import { formatFields, formatTable } from '../../../client/terminal/table.ts';
import { describeRows, ProgressLine, runInterruptibly } from '../core/progress.ts';
import { configFlag, withExamples, withJson } from '../core/options.ts';
import { dropPrivileges } from '../core/privileges.ts';

const CHUNK_BYTES = 256 * 1024;

interface RestoreOptions {
  readonly check?: boolean;
  readonly configTo?: string;
  readonly json?: boolean;
}

export function addRestore(program: Command, context: CommandContext): void {
  const restoreCommand = program
    .command('restore')
    .description('load a backup into an empty database; the server must not run')
    .argument('<file>', 'the file that "klatch backup" made; - is standard input')
    .option('--check', 'only read it to its end, and say whether it is whole and what is in it')
    .option('--config-to <dir>', 'only write the configuration that is in it into a folder; nothing is overwritten')
    .action(async (file: string, options: RestoreOptions, self: Command) => {
      if (options.check === true) await checkBackup(context, file, options);
      else if (options.configTo !== undefined) await restoreConfiguration(context, file, options);
      else await restoreDatabase(context, { file, configPath: configFlag(self), options });
    });
  restoreCommand.options.find(({ long }) => long === '--check')?.conflicts('configTo');
  withExamples(withJson(restoreCommand), [
    'klatch restore --check /var/backups/klatch-2026-11-20.tar.gz',
    'klatch restore --config-to /root/klatch-conf /var/backups/klatch-2026-11-20.tar.gz',
    'klatch restore /var/backups/klatch-2026-11-20.tar.gz',
  ]);
}

function openStream({ input }: CommandContext, file: string, signal: AbortSignal): Readable {
  return addAbortSignal(signal, file === '-' ? input : createReadStream(file));
}

async function checkBackup(context: CommandContext, file: string, { json }: RestoreOptions): Promise<void> {
  const readResult = await runInterruptibly(context, (signal) => readBackup(openStream(context, file, signal), {}));
  const { header, manifest } = readResult;
  if (json === true) printJson(context, { ...header, rows: manifest.rows });
  else print(context, ...contentLines(readResult));
}

function contentLines({ header, manifest }: ReadBackupResult): string[] {
  const { configuration, left_out: leftOut } = header;
  const configurationPaths = configuration.files.map(({ path }) => path).join(', ');
  return [
    ...formatFields([
      ['taken', header.taken_at],
      ['by', `Klatch ${header.klatch}, schema ${header.schema}, PostgreSQL ${header.postgresql}`],
      ['holds', `${describeTotalRowsAndBytes(manifest)} before compression`],
      ['configuration', `${configurationPaths} (${configuration.secrets ? 'with' : 'without'} secrets)`],
      ...(configuration.missing.length === 0 ? [] : [['to be supplied', configuration.missing.join(', ')] as const]),
    ]),
    '',
    ...formatTable(['TABLE', 'ROWS'], Object.entries(manifest.rows)),
    '',
    ...formatTable(
      ['LEFT OUT', 'WHY'],
      leftOut.map(({ table, reason }) => [table, reason]),
    ),
    '',
    'It is whole.',
    ...schemaProblemLines(header),
  ];
}

/** Lines that say why this program cannot load the backup, although it is complete; empty: the program can load it. */
function schemaProblemLines(header: BackupHeader): string[] {
  try {
    checkBackupSchema(header);
    return [];
  } catch (error) {
    if (error instanceof BackupError) return [error.message];
    throw error;
  }
}

async function restoreConfiguration(context: CommandContext, file: string, options: RestoreOptions): Promise<void> {
  const folder = resolve(options.configTo!);
  const contentByName = new Map<string, Buffer>();
  const { header } = await runInterruptibly(context, (signal) =>
    readBackup(openStream(context, file, signal), {
      configuration: (name, content) => void contentByName.set(name, content),
    }),
  );
  const { files, missing } = header.configuration;
  const { placed, blockingPaths } = writeConfigurationFiles(
    files.map((each) => ({ ...each, content: contentByName.get(each.name)! })),
    folder,
  );
  if (blockingPaths.length > 0) {
    const sentence = `nothing was written, these files are there already: ${blockingPaths.join(', ')}. Give another folder.`;
    throw new CommandError(exitCodes.cannotCreate, sentence);
  }
  if (options.json === true) printJson(context, { placed, missing });
  else print(context, ...restoredConfigFileLines(placed, missing));
}

function restoredConfigFileLines(
  placed: readonly { readonly file: string; readonly from: string | null }[],
  missing: readonly string[],
): string[] {
  const relocatedFiles = placed.filter(({ from }) => from !== null);
  return [
    'Wrote:',
    ...placed.map(({ file }) => replaceControlCharacters(`  ${file}`)),
    ...(relocatedFiles.length === 0 ? [] : ['These stood elsewhere, move them there or change server.conf:']),
    ...relocatedFiles.map(({ file, from }) => replaceControlCharacters(`  ${file} was ${from}`)),
    ...(missing.length === 0 ? [] : ['To be supplied, since the backup was made without secrets:']),
    ...missing.map((each) => replaceControlCharacters(`  ${each}`)),
  ];
}

async function restoreDatabase(
  context: CommandContext,
  { file, configPath, options }: { file: string; configPath: string | undefined; options: RestoreOptions },
): Promise<void> {
  const configFile = findConfigFile({
    configOption: configPath,
    env: context.env,
    programBinDir: context.programBinDir,
  });
  const { config } = loadConfig(configFile, { env: context.env });
  const { loaded, header } = await runInterruptibly(context, (signal) =>
    loadBackupFile(context, { config, file, signal }),
  );
  if (options.json === true) {
    printJson(context, { rows: loaded.rowCount, migrated: loaded.appliedMigrations, taken_at: header.taken_at });
    return;
  }
  const migrationLines =
    loaded.appliedMigrations.length === 0 ? [] : [`Brought it up to date: ${loaded.appliedMigrations.join(', ')}.`];
  print(
    context,
    `Loaded ${describeRows(loaded.rowCount)} as of ${header.taken_at}.`,
    ...migrationLines,
    'Next: start the server.',
  );
}

/**
 * An open backup. It can be read from its beginning several times, but only once if it is a pipe. It is opened before
 * this process gives up root's rights.
 */
interface BackupSource {
  readonly isPipe: boolean;
  read(): Readable;
  close(): Promise<void>;
}

async function openSource(context: CommandContext, file: string, signal: AbortSignal): Promise<BackupSource> {
  if (file === '-') return { isPipe: true, read: () => openStream(context, file, signal), close: async () => {} };
  const handle = await openFile(file);
  const isPipe = (await handle.stat()).isFIFO();
  return {
    isPipe,
    read: () => addAbortSignal(signal, Readable.from(chunksOf(handle, isPipe ? null : 0), { objectMode: false })),
    close: () => handle.close(),
  };
}

/**
 * Reads a file in chunks. `handle.createReadStream` is not used, since it closes the handle at the end.
 * `startPosition`: the position to begin at; null: the current position of the handle.
 */
async function* chunksOf(handle: FileHandle, startPosition: number | null): AsyncGenerator<Buffer> {
  for (let position = startPosition; ;) {
    const { buffer, bytesRead } = await handle.read({ buffer: Buffer.allocUnsafe(CHUNK_BYTES), position });
    if (bytesRead === 0) return;
    yield buffer.subarray(0, bytesRead);
    if (position !== null) position += bytesRead;
  }
}

interface BackupLoadTask {
  readonly config: Config;
  readonly file: string;
  readonly signal: AbortSignal;
}

async function loadBackupFile(
  context: CommandContext,
  { config, file, signal }: BackupLoadTask,
): Promise<{ loaded: DatabaseLoadResult; header: BackupHeader }> {
  const source = await openSource(context, file, signal);
  try {
    // A file is read completely before it is loaded, so that its problems are reported before any change. A pipe can be
    // read only once, so it is checked while it is loaded.
    if (!source.isPipe) await readBackup(source.read(), { header: (header) => checkBackupSchema(header) });
    dropPrivileges(config.dataDir);
    return await loadFromSource(context, source, { config, signal });
  } finally {
    await source.close();
  }
}

async function loadFromSource(
  context: CommandContext,
  source: BackupSource,
  { config, signal }: Omit<BackupLoadTask, 'file'>,
): Promise<{ loaded: DatabaseLoadResult; header: BackupHeader }> {
  const database = await acquireDatabaseForLoading(config, () => {});
  const progress = new ProgressLine(context);
  try {
    let header: BackupHeader | null = null;
    const loaded = await loadDatabase(
      database.target,
      async (loader) => {
        const readResult = await readBackup(source.read(), {
          header: (backupHeader) => loader.begin(backupHeader),
          rows: (table, content) => loader.copyRows(table, content),
        });
        ({ header } = readResult);
      },
      {
        sealer: new Sealer(config.secret),
        newEpochAbove: await readRestoredEpoch(config.dataDir),
        onProgress: progress.show,
        signal,
      },
    );
    await writeRestoredEpoch(config.dataDir, loaded.newEpoch!);
    return { loaded, header: header! };
  } finally {
    progress.clear();
    await database.close();
  }
}
