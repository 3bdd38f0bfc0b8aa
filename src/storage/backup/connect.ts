import { realpath } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from '../../config/config.ts';
import type { ConnectionTarget } from '../db/connection.ts';
import { DataDirLock, DataDirLockedError } from '../../data-dir/lock.ts';
import { readClusterMajor } from '../embedded/cluster.ts';
import { startEmbedded } from '../embedded/embedded.ts';
import { findEmbeddedTarget } from '../embedded/inspection.ts';
import { externalTarget } from '../open-database.ts';
import { BackupError } from './format.ts';

/** A database that accepts connections until `close`, which stops everything that was started for it. */
interface AcquiredDatabase {
  readonly target: ConnectionTarget;
  close(): Promise<void>;
}

/** A function that logs an event: a text and fields. */
export type ConnectLog = (event: string, fields?: Record<string, unknown>) => void;

const doNothing = async (): Promise<void> => {};

/**
 * Opens the database of a configuration for reading, whether its server runs or not. It starts an embedded server that
 * does not run, under the data directory's lock. Rejects with:
 * - EmbeddedError and DataDirError
 * - DataDirLockedError: a process has locked the data directory, but no database server runs there.
 * - BackupError: there is no database yet.
 */
export async function acquireDatabaseForReading(config: Config, log: ConnectLog): Promise<AcquiredDatabase> {
  if (!config.postgresql.embedded) return { target: externalTarget(config), close: doNothing };
  const folder = await realpath(config.dataDir).catch(nullIfNotFound);
  if (folder === null || (await readClusterMajor(join(folder, 'postgresql'))) === null) {
    throw new BackupError(`There is no database in ${config.dataDir} yet.`);
  }
  let lock: DataDirLock;
  try {
    lock = await DataDirLock.acquire(config.dataDir);
  } catch (error) {
    const target = error instanceof DataDirLockedError ? await findEmbeddedTarget(folder, config.postgresql) : null;
    if (target === null) throw error;
    return { target, close: doNothing };
  }
  return startEmbeddedUnderLock(lock, config, log);
}

/**
 * Opens the database of a configuration for loading; no other process may have locked the data directory. It starts an
 * embedded server, and creates its database if there is none. Rejects with EmbeddedError, DataDirError and
 * DataDirLockedError.
 */
export async function acquireDatabaseForLoading(config: Config, log: ConnectLog): Promise<AcquiredDatabase> {
  const lock = await DataDirLock.acquire(config.dataDir);
  if (config.postgresql.embedded) return startEmbeddedUnderLock(lock, config, log);
  return { target: externalTarget(config), close: () => lock.release() };
}

async function startEmbeddedUnderLock(lock: DataDirLock, config: Config, log: ConnectLog): Promise<AcquiredDatabase> {
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

function nullIfNotFound(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT') return null;
  throw error;
}
