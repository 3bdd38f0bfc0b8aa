import type { Sql } from '../db/connection.ts';
import { sqlState } from '../db/database-error.ts';
import { asAdministrator, isSupported, readClusterVersion, type ServerVersion } from './administrator.ts';
import { clusterLabel, type LocalCluster } from './clusters.ts';
import {
  isEmptyElseRequireOurs,
  inspectCluster,
  type FoundDatabase,
  type FoundDatabaseRole,
  type ClusterInventory,
} from './inventory.ts';
import { LocalDatabaseError } from './local-error.ts';
import { createPassword, matchesStoredPassword, scramVerifier } from './scram.ts';
import { chooseAddress, verifyLoginAndPrivilege } from './verification.ts';

/** The requested role and database on a local server. */
export interface DatabaseRequest {
  readonly database: string;
  readonly user: string;
  /** The role's password if one was chosen, empty if none is needed; null: a random one is generated. */
  readonly password: string | null;
  /**
   * The secret of Klatch's server, which has to open the sealed values of an existing database; null: there is none
   * yet.
   */
  readonly secret: string | null;
  /** The uid with which Klatch's server will connect over a Unix socket; null: that of this process. */
  readonly serverUid: number | null;
  /** The host in the existing configuration; null: the listen addresses of PostgreSQL decide. */
  readonly host: string | null;
}

/** A role and a database that work, proven by a login. */
export interface ProvisionedDatabase {
  readonly host: string;
  readonly port: number;
  readonly password: string;
  /** The version of PostgreSQL, such as "15.18". */
  readonly version: string;
  readonly role: 'made' | 'kept' | 'new password';
  readonly database: 'made' | 'kept';
}

/**
 * Locales for character classes (`lc_ctype`) in the order in which they are tried: the same on every machine, else the
 * closest that the system's C library has.
 */
const LC_CTYPES = ['C.UTF-8', 'C.utf8', 'en_US.UTF-8', 'C'] as const;
/** From this version on PostgreSQL includes C.UTF-8. */
const BUILTIN_LOCALE_VERSION = 170_000;
/** From this version on a role can keep the parameters of its statements out of the log. */
const LOG_PARAMETER_LENGTH_VERSION = 130_000;
const NAME_MAX_BYTES = 63;
const UNKNOWN_LOCALE_SQLSTATES = ['42809', '22023'];

/**
 * Creates a role and a database on a local server, or uses existing ones, and logs in with them as Klatch's server
 * will. May be repeated after any interruption. Rejects with LocalDatabaseError, or IncompatibleSchemaError for a
 * database of a newer Klatch. After a rejection nothing that existed has changed, except possibly the role's password.
 */
export async function provisionDatabase(cluster: LocalCluster, request: DatabaseRequest): Promise<ProvisionedDatabase> {
  for (const name of [request.database, request.user]) requireShortName(name);
  const server = await readClusterVersion(cluster);
  requireSupportedServer(cluster, server);
  const inventory = await asAdministrator(cluster, 'postgres', (sql) => inspectCluster(sql, request));
  requireUsableServer(cluster, inventory);
  if (inventory.role !== null) requireUsableRole(inventory.role, request);
  if (inventory.database !== null) requireUsableDatabase(inventory.database, request);
  const isEmpty =
    inventory.database === null ||
    (await asAdministrator(cluster, request.database, (sql) =>
      isEmptyElseRequireOurs(sql, request.database, request.secret),
    ));
  const password = request.password ?? createPassword();
  const roleOutcome = await asAdministrator(cluster, 'postgres', async (sql) => {
    const outcome = await ensureRoleWithPassword(sql, inventory.role, { user: request.user, password, server });
    if (inventory.database === null) await createDatabase(sql, server, request);
    // The revocation is repeated for an empty database, which an interrupted set-up may have left: nobody needs access
    // to it.
    if (isEmpty) await revokePublicAccess(sql, request.database);
    return outcome;
  });
  const address = {
    ...chooseAddress(cluster, inventory.listenAddresses),
    ...(request.host !== null && { host: request.host }),
  };
  await verifyLoginAndPrivilege({ cluster, address, hbaFile: inventory.hbaFile, login: { ...request, password } });
  const database = inventory.database === null ? 'made' : 'kept';
  return { ...address, password, version: server.version, role: roleOutcome, database };
}

/**
 * Rejects names that PostgreSQL would silently cut off: Klatch would find the database or role under another name, or
 * not at all.
 */
function requireShortName(name: string): void {
  if (Buffer.byteLength(name) <= NAME_MAX_BYTES) return;
  const message = `The name "${name}" has more than ${NAME_MAX_BYTES} bytes, which is all that PostgreSQL keeps of one. Give a shorter one with --db-name or --db-user.`;
  throw new LocalDatabaseError('refused', message);
}

/** Rejects a server that Klatch does not support, and advises to use the PostgreSQL that comes with Klatch. */
export function requireSupportedServer(cluster: LocalCluster, server: ServerVersion): void {
  if (isSupported(server)) return;
  throw new LocalDatabaseError(
    'refused',
    `PostgreSQL ${server.version} (${clusterLabel(cluster)}) is too old: Klatch needs 11 or newer. Take the one that ` +
      'comes with Klatch: "sudo apt-get install klatch-postgresql", then "sudo klatch setup --embedded".',
  );
}

function requireUsableServer(cluster: LocalCluster, { administratorIsSuperuser, isStandby }: ClusterInventory): void {
  const serverLabel = `PostgreSQL ${clusterLabel(cluster)}`;
  if (isStandby) {
    throw new LocalDatabaseError(
      'refused',
      `${serverLabel} is a standby, which takes no writes: choose the primary server.`,
    );
  }
  if (administratorIsSuperuser) return;
  const message = `The owner of the socket of ${serverLabel} is not its superuser: make the role and the database by hand (docs/database.md).`;
  throw new LocalDatabaseError('refused', message);
}

function requireUsableRole(role: FoundDatabaseRole, { user, password }: DatabaseRequest): void {
  const advice = 'Nothing was changed: choose another role with --db-user.';
  if (role.excessRights.length > 0 || !role.canLogIn) {
    const refusalReason = role.canLogIn
      ? `has more rights than Klatch should (${role.excessRights.join(', ')})`
      : 'may not log in';
    throw new LocalDatabaseError('refused', `The role "${user}" exists and ${refusalReason}. ${advice}`);
  }
  if (password !== null && isEmptyOrStoredPassword(role, user, password)) return;
  // If nothing is thrown below, the role gets another password, which locks out its current users.
  const { sessions, otherOwnedDatabases } = role;
  if (sessions === 0 && otherOwnedDatabases.length === 0) return;
  const currentUse =
    otherOwnedDatabases.length > 0
      ? `owns other databases (${otherOwnedDatabases.join(', ')})`
      : `is logged in ${sessions === 1 ? 'once' : `${sessions} times`} right now`;
  throw new LocalDatabaseError(
    'refused',
    `The role "${user}" exists and ${currentUse}, and its password is not known here. Give it with --db-password-file. ${advice}`,
  );
}

function requireUsableDatabase({ owner, encoding }: FoundDatabase, { database, user }: DatabaseRequest): void {
  const advice = 'Nothing was changed: choose another one with --db-name.';
  if (owner !== user) {
    const message = `The database "${database}" exists and belongs to the role "${owner}", not to "${user}". ${advice}`;
    throw new LocalDatabaseError('refused', message);
  }
  if (encoding === 'UTF8') return;
  const message = `The database "${database}" exists in the encoding ${encoding}, and Klatch needs UTF8. ${advice}`;
  throw new LocalDatabaseError('refused', message);
}

async function ensureRoleWithPassword(
  sql: Sql,
  found: FoundDatabaseRole | null,
  { user, password, server }: { user: string; password: string; server: ServerVersion },
): Promise<ProvisionedDatabase['role']> {
  if (found !== null && isEmptyOrStoredPassword(found, user, password)) return 'kept';
  // When statements are logged, PostgreSQL may write the verifier to its log, but never the password.
  const name = quoteIdentifier(user);
  const passwordClause = `password '${scramVerifier(password || createPassword())}'`;
  if (found !== null) {
    await sql.unsafe(`alter role ${name} ${passwordClause}`);
    return 'new password';
  }
  await sql.begin(async (tx) => {
    await tx.unsafe(
      `create role ${name} login nosuperuser nocreatedb nocreaterole noreplication nobypassrls ${passwordClause}`,
    );
    // These settings keep user data out of the server's log: errors of statements quote values (Klatch gets them
    // anyway), and logged statements have parameters.
    await tx.unsafe(`alter role ${name} set log_min_messages = 'log'`);
    if (server.number >= LOG_PARAMETER_LENGTH_VERSION)
      await tx.unsafe(`alter role ${name} set log_parameter_max_length = 0`);
  });
  return 'made';
}

/**
 * Whether the password is the role's stored one, or empty: a user with peer authentication needs no password, whatever
 * the role has.
 */
function isEmptyOrStoredPassword({ storedPassword }: FoundDatabaseRole, user: string, password: string): boolean {
  return password === '' || matchesStoredPassword(storedPassword, user, password);
}

async function createDatabase(sql: Sql, { number }: ServerVersion, { database, user }: DatabaseRequest): Promise<void> {
  const createStatement = `create database ${quoteIdentifier(database)} owner ${quoteIdentifier(user)} template template0 encoding 'UTF8' lc_collate 'C'`;
  if (number >= BUILTIN_LOCALE_VERSION) {
    await sql.unsafe(`${createStatement} lc_ctype 'C' locale_provider builtin builtin_locale 'C.UTF-8'`);
    return;
  }
  for (const type of LC_CTYPES) {
    try {
      await sql.unsafe(`${createStatement} lc_ctype '${type}'`);
      return;
    } catch (error) {
      if (type === 'C' || !UNKNOWN_LOCALE_SQLSTATES.includes(sqlState(error) ?? '')) throw error;
    }
  }
}

/** Allows only the owner to connect to a database. PostgreSQL lets every role connect to a new one. */
async function revokePublicAccess(sql: Sql, database: string): Promise<void> {
  await sql.unsafe(`revoke connect, temporary on database ${quoteIdentifier(database)} from public`);
}

/** Quotes a name for SQL. The postgres library's own quoting would treat a dot as a separator between names. */
function quoteIdentifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
