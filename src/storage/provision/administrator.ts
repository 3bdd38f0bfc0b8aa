import { Connection, type ConnectionTarget, type Sql } from '../db/connection.ts';
import {
  DatabaseUnavailableError,
  CommitUnknownError,
  sqlState,
  UNKNOWN_SETTING_SQLSTATE,
} from '../db/database-error.ts';
import { readPasswd } from '../../data-dir/passwd.ts';
import { clusterLabel, type LocalCluster } from './clusters.ts';
import { LocalDatabaseError } from './local-error.ts';

export const CONNECT_TIMEOUT_MS = 5_000;
export const LOCK_TIMEOUT_MS = 10_000;
/**
 * The time-out of all statements on one connection. Creating a database copies another one, which takes a second on a
 * slow disk.
 */
const ADMIN_STATEMENTS_TIMEOUT_MS = 60_000;
const MIN_SUPPORTED_VERSION = 110_000;

/** The version of a server; `number` is PostgreSQL's version number, such as 150018, or 0 before 9.6. */
export interface ServerVersion {
  readonly version: string;
  readonly number: number;
}

/**
 * Runs `work` as the administrator of a local server: over its Unix socket, as the user who owns that socket. Peer
 * authentication accepts that user as the superuser of the same name. The process has to be root. Rejects with
 * LocalDatabaseError.
 */
export async function asAdministrator<T>(
  cluster: LocalCluster,
  database: string,
  work: (sql: Sql) => Promise<T>,
): Promise<T> {
  const { socketDir: host, port, socketOwnerUid } = cluster;
  if (socketOwnerUid === null) throw notRunningError(cluster);
  const user = readPasswd().find(({ uid }) => uid === socketOwnerUid)?.name ?? 'postgres';
  const connectTimeoutMs = CONNECT_TIMEOUT_MS;
  const target: ConnectionTarget = {
    host,
    port,
    database,
    user,
    password: '',
    connectTimeoutMs,
    lockTimeoutMs: LOCK_TIMEOUT_MS,
  };
  const connection = new Connection(target, 'setup', { connectAsUid: socketOwnerUid, acceptsReadOnly: true });
  try {
    return await connection.run(work, ADMIN_STATEMENTS_TIMEOUT_MS);
  } catch (error) {
    throw toLocalDatabaseError(error, cluster, user);
  } finally {
    connection.close();
  }
}

/** Reads a server's version. Rejects with LocalDatabaseError if the server does not run or rejects the login. */
export async function readClusterVersion(cluster: LocalCluster): Promise<ServerVersion> {
  try {
    return await asAdministrator(cluster, 'postgres', async (sql) => {
      const [row] = await sql<ServerVersion[]>`
        select split_part(current_setting('server_version'), ' ', 1) as version,
          current_setting('server_version_num')::int as number`;
      return row!;
    });
  } catch (error) {
    if (sqlState(rootCause(error)) !== UNKNOWN_SETTING_SQLSTATE) throw error;
    return { version: cluster.name?.split('/')[0] ?? 'older than 9.6', number: 0 };
  }
}

/** Whether Klatch supports this version. */
export function isSupported({ number }: ServerVersion): boolean {
  return number >= MIN_SUPPORTED_VERSION;
}

/** The innermost cause of an error: the server's own error, which Klatch's errors wrap. */
export function rootCause(error: unknown): unknown {
  return error instanceof Error && error.cause !== undefined ? rootCause(error.cause) : error;
}

function notRunningError(cluster: LocalCluster): LocalDatabaseError {
  const [version, name] = cluster.name?.split('/') ?? [];
  const startCommand =
    version === undefined ? 'sudo service postgresql start' : `sudo pg_ctlcluster ${version} ${name} start`;
  return new LocalDatabaseError(
    'unavailable',
    `PostgreSQL ${clusterLabel(cluster)} does not run. Start it with "${startCommand}", then repeat this command.`,
  );
}

function toLocalDatabaseError(error: unknown, cluster: LocalCluster, user: string): unknown {
  const serverLabel = `PostgreSQL ${clusterLabel(cluster)}`;
  if (error instanceof CommitUnknownError) {
    const message = `${serverLabel} did not finish: ${error.message}. Repeat this command: what is made already is kept.`;
    return new LocalDatabaseError('unavailable', message, { cause: error });
  }
  if (sqlState(error) !== null) {
    const message = `${serverLabel} refused: ${(error as Error).message}. Put that right, then repeat this command.`;
    return new LocalDatabaseError('unavailable', message, { cause: error });
  }
  if (!(error instanceof DatabaseUnavailableError)) return error;
  const cause = rootCause(error);
  const state = sqlState(cause);
  // A killed server leaves a socket that refuses connections; a stopping one removes its socket.
  if (['ECONNREFUSED', 'ENOENT'].includes((cause as NodeJS.ErrnoException).code ?? '')) return notRunningError(cluster);
  if (state?.startsWith('28') === true) {
    const file = cluster.hbaFile ?? 'its pg_hba.conf';
    const message =
      `${serverLabel} does not let its administrator in (${(cause as Error).message}). Klatch comes as the user "${user}" over ` +
      `${cluster.socketDir}: put the line "local all ${user} peer" first into ${file} and reload it, or make the role ` +
      'and the database by hand (docs/database.md).';
    return new LocalDatabaseError('unavailable', message, { cause: error });
  }
  return new LocalDatabaseError('unavailable', `${serverLabel} cannot be used: ${error.message}`, { cause: error });
}
