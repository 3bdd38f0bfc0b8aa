import type { Command } from 'commander';
import type { Config } from '../../config/config.ts';
import { loadConfig } from '../../config/load.ts';
import { findConfigFile } from '../../config/tree.ts';
import { silentLog } from '../../log.ts';
import { DataDirLock } from '../../data-dir/lock.ts';
import { newestSchemaVersion } from '../../storage/db/migration-files.ts';
import { openDatabase } from '../../storage/open-database.ts';
import { Sealer } from '../../storage/db/sealed.ts';
import { type CommandContext, print, printError, printJson } from '../core/context.ts';
import { configFlag, withExamples, withJson } from '../core/options.ts';
import { dropPrivileges } from '../core/privileges.ts';

export function addMigrate(program: Command, context: CommandContext): void {
  const migrateCommand = program
    .command('migrate')
    .description('bring the database to the schema of this program; the server must not run (it does this by itself)')
    .action(async ({ json }: { json?: boolean }, self: Command) => {
      const file = findConfigFile({
        configOption: configFlag(self),
        env: context.env,
        programBinDir: context.programBinDir,
      });
      const applied = await migrateDatabase(context, loadConfig(file, { env: context.env }).config);
      const version = newestSchemaVersion();
      if (json === true) printJson(context, { version, applied });
      else if (applied.length === 0) print(context, `Nothing to do: the database is at schema ${version}.`);
      else print(context, ...applied.map((name) => `applied ${name}`), `The database is at schema ${version}.`);
    });
  withExamples(withJson(migrateCommand), ['klatch migrate', 'klatch migrate --config ./server.conf --json']);
}

/**
 * Applies the missing migrations, and resolves to their names. Holds the lock of the data directory meanwhile. Rejects
 * with DataDirLockedError while a server uses the directory, and as `openDatabase` does.
 */
async function migrateDatabase(context: CommandContext, config: Config): Promise<readonly string[]> {
  const log = {
    ...silentLog(),
    warn: (event: string, { reason = '' } = {}) => printError(context, `${event}: ${reason}`),
  };
  dropPrivileges(config.dataDir);
  const lock = await DataDirLock.acquire(config.dataDir);
  try {
    const opened = await openDatabase(config, { sealer: new Sealer(config.secret), log });
    await opened.stop();
    return opened.appliedMigrations;
  } finally {
    await lock.release();
  }
}
