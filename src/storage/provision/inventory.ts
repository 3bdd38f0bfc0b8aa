import type { Sql } from '../db/connection.ts';
import { checkSchemaReturningVersion } from '../db/schema-compatibility.ts';
import { opensCanary, Sealer } from '../db/sealed.ts';
import { LocalDatabaseError } from './local-error.ts';

/** An existing role of a server. */
export interface FoundDatabaseRole {
  readonly canLogIn: boolean;
  /** Rights that Klatch's role must not have, in words. */
  readonly excessRights: readonly string[];
  /** The role's password verifier, as the server stores it. */
  readonly storedPassword: string | null;
  /** The databases that the role owns besides the requested one. */
  readonly otherOwnedDatabases: readonly string[];
  /** Sessions that are open with this role right now. */
  readonly sessions: number;
}

/** An existing database of a server. */
export interface FoundDatabase {
  readonly owner: string;
  readonly encoding: string;
}

/** The state of a server before Klatch creates anything. */
export interface ClusterInventory {
  readonly administratorIsSuperuser: boolean;
  readonly isStandby: boolean;
  readonly listenAddresses: string;
  readonly hbaFile: string;
  readonly role: FoundDatabaseRole | null;
  readonly database: FoundDatabase | null;
}

type ServerRow = Omit<ClusterInventory, 'role' | 'database'>;

/** Inspects a server as its administrator; changes nothing. */
export async function inspectCluster(sql: Sql, names: { database: string; user: string }): Promise<ClusterInventory> {
  const [server] = await sql<ServerRow[]>`
    select current_setting('is_superuser') = 'on' as "administratorIsSuperuser", pg_is_in_recovery() as "isStandby",
      current_setting('listen_addresses') as "listenAddresses", current_setting('hba_file') as "hbaFile"`;
  const [role] = await sql<FoundDatabaseRole[]>`
    select rolcanlogin as "canLogIn", rolpassword as "storedPassword",
      to_json(array_remove(array[case when rolsuper then 'superuser' end, case when rolcreatedb then 'createdb' end,
        case when rolcreaterole then 'createrole' end, case when rolreplication then 'replication' end,
        case when rolbypassrls then 'bypassrls' end], null)) as "excessRights",
      to_json(array(select datname from pg_database where datdba = pg_authid.oid and datname <> ${names.database}
        order by datname limit 5)) as "otherOwnedDatabases",
      (select count(*)::int from pg_stat_activity where usename = rolname) as sessions
    from pg_authid where rolname = ${names.user}`;
  const [database] = await sql<FoundDatabase[]>`
    select rolname as owner, pg_encoding_to_char(encoding) as encoding
    from pg_database join pg_roles on pg_roles.oid = datdba where datname = ${names.database}`;
  return { ...server!, role: role ?? null, database: database ?? null };
}

/**
 * Whether an existing database is empty, or belongs to a Klatch with the given secret. Resolves with true when it is
 * empty; rejects with LocalDatabaseError or IncompatibleSchemaError for a database that Klatch must not use.
 */
export async function isEmptyElseRequireOurs(sql: Sql, name: string, secret: string | null): Promise<boolean> {
  const [row] = await sql<{ relations: number }[]>`
    select count(*)::int as relations from pg_class join pg_namespace on pg_namespace.oid = relnamespace
    where relkind in ('r', 'p', 'v', 'm', 'f', 'S') and nspname not in ('pg_catalog', 'information_schema')
      and nspname not like 'pg_toast%' and nspname not like 'pg_temp%'
      -- Without the tables and views of extensions, such as pg_stat_statements: they hold nobody's data.
      and not exists (select 1 from pg_depend where classid = 'pg_class'::regclass and objid = pg_class.oid and deptype = 'e')`;
  if (row!.relations === 0) return true;
  if (!(await isKlatchDatabase(sql))) {
    const message = `The database "${name}" exists and holds tables that are not Klatch's. Nothing was changed: choose another one with --db-name.`;
    throw new LocalDatabaseError('refused', message);
  }
  if ((await checkSchemaReturningVersion(sql)) > 0 && !(await opensCanaryIfAny(sql, secret))) {
    const message =
      `The database "${name}" holds the data of a Klatch whose secret is not in this configuration. Put the old ` +
      '`secret` into it first, or choose another database with --db-name.';
    throw new LocalDatabaseError('refused', message);
  }
  return false;
}

/**
 * Whether a database is Klatch's: it has certain columns of `schema_version`, a table that every version of Klatch
 * creates.
 */
async function isKlatchDatabase(sql: Sql): Promise<boolean> {
  const [row] = await sql<{ columns: number }[]>`
    select count(*)::int as columns from information_schema.columns
    where table_schema = current_schema() and table_name = 'schema_version'
      and column_name in ('version', 'name', 'applied_at')`;
  return row!.columns === 3;
}

async function opensCanaryIfAny(sql: Sql, secret: string | null): Promise<boolean> {
  // `opensCanary` answers null if the database has no sealed values. An empty secret opens no canary, so without a secret
  // the result is true only for such a database.
  return (await opensCanary(sql, new Sealer(secret ?? ''))) !== false;
}
