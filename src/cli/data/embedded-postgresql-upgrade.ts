import type { Command } from 'commander';
import type { Config } from '../../config/config.ts';
import { loadConfig } from '../../config/load.ts';
import { findConfigFile } from '../../config/tree.ts';
import { removeOldClusters, upgradeCluster, type UpgradeResult } from '../../storage/backup/upgrade-cluster.ts';
import { readVersion } from '../../version.ts';
import { type CommandContext, print, printError, printJson } from '../core/context.ts';
import { exitCodes } from '../core/exit-codes.ts';
import { CommandError } from '../core/failure.ts';
import { describeRows, ProgressLine, runInterruptibly } from '../core/progress.ts';
import { configFlag, withExamples, withJson } from '../core/options.ts';
import { dropPrivileges } from '../core/privileges.ts';

interface UpgradeFlags {
  readonly oldBinDir?: string;
  readonly removeOld?: boolean;
  readonly json?: boolean;
}

export function addEmbeddedPostgresqlUpgrade(program: Command, context: CommandContext): void {
  const database = program.command('db').description('look after the embedded database');
  withExamples(database, ['klatch db upgrade']);
  const upgradeCommand = database
    .command('upgrade')
    .description(
      'move the embedded database to the newest PostgreSQL that is installed; the server must not run, the old files are kept',
    )
    .option('--old-bin-dir <dir>', "the programs of the old version (default: bin-dir, or the system's)")
    .option('--remove-old', 'remove the old files of this and earlier upgrades')
    .action(async (flags: UpgradeFlags, self: Command) => {
      const file = findConfigFile({
        configOption: configFlag(self),
        env: context.env,
        programBinDir: context.programBinDir,
      });
      const { config } = loadConfig(file, { env: context.env });
      if (!config.postgresql.embedded) {
        const sentence = 'the database is not embedded: upgrade that server by its own means, or move with a backup';
        throw new CommandError(exitCodes.operationFailed, sentence);
      }
      await upgradeEmbeddedPostgresql(context, config, flags);
    });
  withExamples(withJson(upgradeCommand), [
    'klatch db upgrade',
    'klatch db upgrade --old-bin-dir /opt/klatch-postgresql-17/postgresql/bin',
    'klatch db upgrade --remove-old',
  ]);
}

async function upgradeEmbeddedPostgresql(context: CommandContext, config: Config, flags: UpgradeFlags): Promise<void> {
  dropPrivileges(config.dataDir);
  const progress = new ProgressLine(context);
  const [upgraded, removed] = await runInterruptibly(context, async (signal) => {
    const upgradeResult = await upgradeCluster(config, {
      klatchVersion: readVersion(),
      oldBinDir: flags.oldBinDir ?? null,
      log: () => {},
      onProgress: progress.show,
      signal,
    });
    return [upgradeResult, flags.removeOld === true ? await removeOldClusters(config.dataDir) : []] as const;
  }).finally(() => progress.clear());
  if (flags.json === true) printJson(context, { ...upgraded, removed });
  else print(context, ...upgradeLines(upgraded, removed));
  const { binDir } = config.postgresql;
  if (upgraded.kind === 'upgraded' && binDir !== null) {
    printError(context, `If services.postgresql.bin-dir (${binDir}) names PostgreSQL ${upgraded.from}, change it now.`);
  }
}

function upgradeLines(upgraded: UpgradeResult, removed: readonly string[]): string[] {
  return [...describeUpgrade(upgraded), ...removed.map((folder) => `Removed ${folder}.`)];
}

function describeUpgrade(upgraded: UpgradeResult): string[] {
  const { kind, major } = upgraded;
  if (kind === 'current') {
    return [`Nothing to do: the database files are of PostgreSQL ${major}, and nothing newer is installed.`];
  }
  if (kind === 'finished') return [`Finished the upgrade to PostgreSQL ${major} that was cut off.`];
  const { from, rows, kept, uncopiedDatabases } = upgraded;
  return [
    `Moved ${describeRows(rows)} from PostgreSQL ${from} to ${major}.`,
    ...uncopiedDatabases.map((name) => `The database ${name} is not Klatch's and was not moved.`),
    `The old files are kept in ${kept}: remove them with "klatch db upgrade --remove-old".`,
  ];
}
