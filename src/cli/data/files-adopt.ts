import type { Command } from 'commander';
import type { Config } from '../../config/config.ts';
import { loadConfig } from '../../config/load.ts';
import { findConfigFile } from '../../config/tree.ts';
import { DataDirLock } from '../../data-dir/lock.ts';
import { adoptStore, type AdoptionCounts } from '../../files/adopt-store.ts';
import { createFileStore } from '../../files/create-store.ts';
import { StoreFullError, StoreUnavailableError } from '../../files/store.ts';
import { silentLog } from '../../log.ts';
import { openDatabase } from '../../storage/open-database.ts';
import { requireNoRunningServer } from '../../storage/rotate-secret.ts';
import { Sealer } from '../../storage/db/sealed.ts';
import { type CommandContext, print, printJson } from '../core/context.ts';
import { exitCodes } from '../core/exit-codes.ts';
import { CommandError } from '../core/failure.ts';
import { configFlag, withExamples, withJson } from '../core/options.ts';
import { dropPrivileges } from '../core/privileges.ts';

export function addFilesAdopt(files: Command, context: CommandContext): void {
  const adoptCommand = files
    .command('adopt')
    .description(
      'make the store in server.conf the one of this database, and mark as lost what it does not have; no server may run',
    )
    .action(async ({ json }: { json?: boolean }, self: Command) => {
      const file = findConfigFile({
        configOption: configFlag(self),
        env: context.env,
        programBinDir: context.programBinDir,
      });
      const { config } = loadConfig(file, { env: context.env });
      const { storeDescription, adopted } = await adoptConfiguredStore(config);
      if (json === true) printJson(context, { store: storeDescription, ...adopted });
      else print(context, ...adoptedLines(storeDescription, adopted));
    });
  withExamples(withJson(adoptCommand), ['klatch files adopt']);
}

/**
 * Assigns the configured store to the configured database, and holds the lock of the data directory meanwhile. Rejects
 * with DataDirLockedError while a server uses the directory.
 */
async function adoptConfiguredStore(config: Config): Promise<{ storeDescription: string; adopted: AdoptionCounts }> {
  dropPrivileges(config.dataDir);
  const lock = await DataDirLock.acquire(config.dataDir);
  try {
    const opened = await openDatabase(config, { sealer: new Sealer(config.secret), log: silentLog() });
    const store = createFileStore(config.files, { maxFileBytes: config.limits.fileBytes });
    try {
      const counts = await adoptStore({ pool: opened.database.general, store }, requireNoRunningServer);
      return { storeDescription: store.description, adopted: counts };
    } catch (error) {
      const sentence = storeFailureSentence(error);
      if (sentence === null) throw error;
      throw new CommandError(exitCodes.cannotCreate, sentence, { cause: error });
    } finally {
      await store.stop();
      await opened.stop();
    }
  } finally {
    await lock.release();
  }
}

/** What happened to the store, and what to do; null: the error is no failure of the store. */
function storeFailureSentence(error: unknown): string | null {
  if (error instanceof StoreFullError)
    return `The store of files is full: ${error.message}. Make room and repeat this command, which is safe.`;
  if (error instanceof StoreUnavailableError) {
    const advice = 'Put that right and repeat this command, which is safe.';
    return `The store of files cannot be used: ${error.message}. ${advice}`;
  }
  return null;
}

function adoptedLines(storeDescription: string, { files, lost, found }: AdoptionCounts): string[] {
  return [
    `${storeDescription} is the store of this database now. It has ${files} file${files === 1 ? '' : 's'}.`,
    `Marked as lost: ${lost}. Found again: ${found}.`,
    'Next: start the server, then `klatch files check`.',
  ];
}
