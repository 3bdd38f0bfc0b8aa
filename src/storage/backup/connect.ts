import { realpath } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from '../../config/config.ts';
import type { ConnectionTarget } from '../db/connection.ts';
import { DataDirLock, DataDirLockedError } from '../../data-dir/lock.ts';
import { readClusterMajor } from '../embedded/cluster.ts';
import { startEmbedded } from '../embedded/embedded.ts';
import { embeddedTarget } from '../embedded/inspection.ts';
import { externalTarget } from '../open-database.ts';
import { BackupError } from './format.ts';

/** A database that can be connected to until `close`, which ends what was started for it. */
interface ConnectedDatabase {
  readonly target: ConnectionTarget;
  close(): Promise<void>;
}

/** Told of what is started, in words and fields. */
export type ConnectLog = (event: string, fields?: Record<string, unknown>) => void;

const nothing = async (): Promise<void> => {};

/**
 * The database of a configuration, to be read, whether its server runs or not. An embedded one that does not run is
 * started under the data directory's lock. Rejects with EmbeddedError, DataDirError, DataDirLockedError (a process has the
 * data directory and no database runs there), and BackupError where there is no database yet.
 */
export async function connectForReading(config: Config, log: ConnectLog): Promise<ConnectedDatabase> {
  if (!config.postgresql.embedded) return { target: externalTarget(config), close: nothing };
  const folder = await realpath(config.dataDir).catch(absent);
  if (folder === null || (await readClusterMajor(join(folder, 'postgresql'))) === null) {
    throw new BackupError(`There is no database in ${config.dataDir} yet.`);
  }
  let lock: DataDirLock;
  try {
    lock = await DataDirLock.acquire(config.dataDir);
  } catch (error) {
    const target = error instanceof DataDirLockedError ? await embeddedTarget(folder, config.postgresql) : null;
    if (target === null) throw error;
    return { target, close: nothing };
  }
  return startUnder(lock, config, log);
}

/**
 * The database of a configuration, to be filled; nobody else may have the data directory. An embedded one is started, and
 * made when there is none. Rejects with EmbeddedError, DataDirError and DataDirLockedError.
 */
export async function connectForLoading(config: Config, log: ConnectLog): Promise<ConnectedDatabase> {
  const lock = await DataDirLock.acquire(config.dataDir);
  if (config.postgresql.embedded) return startUnder(lock, config, log);
  return { target: externalTarget(config), close: () => lock.release() };
}

async function startUnder(lock: DataDirLock, config: Config, log: ConnectLog): Promise<ConnectedDatabase> {
  const { binDir, connectTimeoutMs, lockTimeoutMs } = config.postgresql;
  try {
    const server = await startEmbedded({ dataDir: config.dataDir, binDir, log });
    const { socketDir: host, port, database, user } = server;
    return {
      target: { host, port, database, user, password: '', connectTimeoutMs, lockTimeoutMs },
      close: async () => {
        try {
          await server.stop();
        } finally {
          await lock.release();
        }
      },
    };
  } catch (error) {
    await lock.release();
    throw error;
  }
}

function absent(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT') return null;
  throw error;
}
