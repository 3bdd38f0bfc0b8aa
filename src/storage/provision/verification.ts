import { Connection } from '../db/connection.ts';
import { DatabaseUnavailableError, sqlState } from '../db/database-error.ts';
import { CONNECT_TIMEOUT_MS, LOCK_TIMEOUT_MS, rootCause } from './administrator.ts';
import { clusterLabel, type LocalCluster } from './clusters.ts';
import { LocalDatabaseError } from './local-error.ts';

const LOGIN_CHECK_TIMEOUT_MS = 15_000;

/** The address at which Klatch connects to the database: `host` is an address or the folder of the Unix socket. */
interface DatabaseAddress {
  readonly host: string;
  readonly port: number;
}

/**
 * Chooses how Klatch connects: over TCP with a password if the server listens on this machine's own address, else over
 * its Unix socket.
 */
export function chooseAddress({ socketDir, port }: LocalCluster, listenAddresses: string): DatabaseAddress {
  const listenHosts = listenAddresses.split(',').map((each) => each.trim());
  const listensOnAny = (...addresses: readonly string[]): boolean =>
    addresses.some((each) => listenHosts.includes(each));
  if (listensOnAny('*', '0.0.0.0', 'localhost', '127.0.0.1')) return { host: '127.0.0.1', port };
  return { host: listensOnAny('::', '::1') ? '::1' : socketDir, port };
}

interface LoginVerification {
  readonly cluster: LocalCluster;
  readonly address: DatabaseAddress;
  readonly hbaFile: string;
  readonly login: {
    readonly database: string;
    readonly user: string;
    readonly password: string;
    readonly serverUid: number | null;
  };
}

/** Logs in as Klatch's server will, and checks whether the role may create tables. Rejects with LocalDatabaseError. */
export async function verifyLoginAndPrivilege({ cluster, address, hbaFile, login }: LoginVerification): Promise<void> {
  const { database, user, password, serverUid } = login;
  const target = {
    ...address,
    database,
    user,
    password,
    connectTimeoutMs: CONNECT_TIMEOUT_MS,
    lockTimeoutMs: LOCK_TIMEOUT_MS,
  };
  const connection = new Connection(target, 'setup', serverUid === null ? {} : { connectAsUid: serverUid });
  try {
    const mayCreateTables = await connection.run(async (sql) => {
      const [row] = await sql<{ mayCreate: boolean }[]>`
        select coalesce(has_schema_privilege(current_schema(), 'create'), false) as "mayCreate"`;
      return row!.mayCreate;
    }, LOGIN_CHECK_TIMEOUT_MS);
    if (mayCreateTables) return;
  } catch (error) {
    throw toLocalDatabaseError(error, { cluster, address, hbaFile, login });
  } finally {
    connection.close();
  }
  throw new LocalDatabaseError(
    'refused',
    `The role "${user}" may not make tables in the database "${database}". As PostgreSQL's administrator run this ` +
      `there, then repeat this command:\n  grant all on schema public to "${user}";`,
  );
}

function toLocalDatabaseError(error: unknown, { cluster, address, hbaFile, login }: LoginVerification): unknown {
  if (!(error instanceof DatabaseUnavailableError)) return error;
  const cause = rootCause(error);
  const serverLabel = `PostgreSQL ${clusterLabel(cluster)}`;
  const line = hbaLine(address, login);
  const way = address.host.startsWith('/') ? `the socket in ${address.host}` : `${address.host}:${address.port}`;
  const text = (cause as Error).message;
  if (sqlState(cause)?.startsWith('28') !== true) {
    const message = `The role and the database are made, but ${serverLabel} cannot be reached over ${way}: ${text}. Put that right, then repeat this command.`;
    return new LocalDatabaseError('unavailable', message, { cause: error });
  }
  const [version, name] = cluster.name?.split('/') ?? [];
  const reloadCommand =
    version === undefined ? 'sudo service postgresql reload' : `sudo pg_ctlcluster ${version} ${name} reload`;
  return new LocalDatabaseError(
    'unavailable',
    `The role and the database are made, but ${serverLabel} does not let the role in over ${way} (${text}). Put this line ` +
      `before all others into ${hbaFile}:\n  ${line}\nthen run "${reloadCommand}" and repeat this command.`,
    { cause: error },
  );
}

/** The line of pg_hba.conf that admits the role. In quotes, no name has a special meaning there. */
function hbaLine({ host }: DatabaseAddress, { database, user }: LoginVerification['login']): string {
  const names = [database, user].map((each) => `"${each.replaceAll('"', '""')}"`).join('  ');
  if (host.startsWith('/')) return `local  ${names}  scram-sha-256`;
  return `host  ${names}  ${host}/${host.includes(':') ? 128 : 32}  scram-sha-256`;
}
