import { realpath } from 'node:fs/promises';
import { join } from 'node:path';
import type { PostgresqlConfig } from '../../config/services.ts';
import type { ConnectionTarget } from '../db/connection.ts';
import { chooseOsUser } from './os-user.ts';
import { readClusterMajor, refuseUnfinishedUpgrade } from './cluster.ts';
import { findPostmaster } from './postmaster.ts';
import { findPrograms } from './programs.ts';
import { APP_DATABASE, APP_DATABASE_ROLE } from './readiness.ts';

/** The state that a start of the private server would find. */
interface EmbeddedInspection {
  /** The version of the programs, such as "18.4", and their folder. */
  readonly postgresqlVersion: string;
  readonly binDir: string;
  /** False: the first start creates the database files. */
  readonly clusterExists: boolean;
  /** The connection target; null: the server does not run. */
  readonly target: ConnectionTarget | null;
}

/**
 * Looks for the programs, the database files with their owner, and a running server, and changes nothing. Rejects with
 * EmbeddedError where a start would.
 */
export async function inspectEmbeddedPostgresql(
  dataDir: string,
  config: PostgresqlConfig,
): Promise<EmbeddedInspection> {
  const folder = await realpath(dataDir).catch(nullIfNotFound);
  const clusterDir = join(folder ?? dataDir, 'postgresql');
  const clusterMajor = folder === null ? null : await readClusterMajor(clusterDir);
  if (folder !== null && clusterMajor === null) await refuseUnfinishedUpgrade(folder);
  const programs = await findPrograms({ binDir: config.binDir, clusterMajor, clusterDir });
  const { postgresqlVersion: version, binDir } = programs;
  if (folder === null) return { postgresqlVersion: version, binDir, clusterExists: false, target: null };
  await chooseOsUser({ dataDir: folder, clusterDir, programs });
  return {
    postgresqlVersion: version,
    binDir,
    clusterExists: clusterMajor !== null,
    target: await findEmbeddedTarget(folder, config),
  };
}

/** The connection target of the running private server of a data directory (a real path); null: none runs. */
export async function findEmbeddedTarget(dataDir: string, config: PostgresqlConfig): Promise<ConnectionTarget | null> {
  const postmaster = await findPostmaster(join(dataDir, 'postgresql'));
  if (postmaster === null) return null;
  const { socketDir: host, port } = postmaster;
  const { connectTimeoutMs, lockTimeoutMs } = config;
  return { host, port, database: APP_DATABASE, user: APP_DATABASE_ROLE, password: '', connectTimeoutMs, lockTimeoutMs };
}

function nullIfNotFound(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT') return null;
  throw error;
}
