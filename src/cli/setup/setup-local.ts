import { existsSync } from 'node:fs';
import { keyState, type ConfigText } from '../../config/edit.ts';
import { isPlaceholder, scalarText } from '../../config/value-types.ts';
import { readTreeFromSources } from '../../config/tree.ts';
import type { SettingKey } from '../../config/schema.ts';
import { isEmbedded, type DatabaseSetupAnswer } from '../../config/setup.ts';
import { valueAt } from '../../../packages/hocon/src/index.ts';
import { isSupported, readClusterVersion, type ServerVersion } from '../../storage/provision/administrator.ts';
import {
  clusterLabel,
  findClusters,
  SYSTEM_CLUSTER_LOCATIONS,
  type LocalCluster,
} from '../../storage/provision/clusters.ts';
import { LocalDatabaseError } from '../../storage/provision/local-error.ts';
import {
  provisionDatabase,
  requireSupportedServer,
  type ProvisionedDatabase,
} from '../../storage/provision/provision.ts';
import type { CommandContext } from '../core/context.ts';
import { exitCodes } from '../core/exit-codes.ts';
import { CommandError } from '../core/failure.ts';
import { databaseConnectionDefaults, type DatabaseFlags } from './setup-questions.ts';

const PASSWORD_SETTING = 'services.postgresql.password';

/**
 * A PostgreSQL server of this machine: either its version is known, or the problem that prevents its use, as a
 * sentence.
 */
export interface ExaminedCluster {
  readonly cluster: LocalCluster;
  readonly server: ServerVersion | null;
  readonly problem: string | null;
}

/** Examines the PostgreSQL servers of this machine, all at the same time. */
export async function examineClusters(
  { postgresqlClusterLocations = SYSTEM_CLUSTER_LOCATIONS }: Pick<CommandContext, 'postgresqlClusterLocations'>,
  socketDir: string | undefined,
): Promise<readonly ExaminedCluster[]> {
  const all = findClusters({ ...postgresqlClusterLocations, ...(socketDir !== undefined && { socketDir }) });
  // If a socket folder is given, only the servers that listen in that folder are meant.
  const clusters = socketDir === undefined ? all : all.filter((cluster) => cluster.socketDir === socketDir);
  return Promise.all(clusters.map(examineCluster));
}

async function examineCluster(cluster: LocalCluster): Promise<ExaminedCluster> {
  if (!mayAdministerIfRunning(cluster)) return { cluster, server: null, problem: needsRootSentence(cluster) };
  try {
    const server = await readClusterVersion(cluster);
    requireSupportedServer(cluster, server);
    return { cluster, server, problem: null };
  } catch (error) {
    if (!(error instanceof LocalDatabaseError)) throw error;
    return { cluster, server: null, problem: error.message };
  }
}

/**
 * True if this user may administer the PostgreSQL server, as root and the server's own user may. Also true for a
 * stopped server, so that every user gets the message that it does not run.
 */
function mayAdministerIfRunning({ socketOwnerUid }: LocalCluster): boolean {
  const uid = process.geteuid?.();
  return uid === 0 || socketOwnerUid === null || uid === socketOwnerUid;
}

function needsRootSentence(cluster: LocalCluster): string {
  return (
    `A role and a database are made in PostgreSQL ${clusterLabel(cluster)} as its administrator, which needs root: ` +
    'repeat this command with sudo.'
  );
}

/** The PostgreSQL servers whose version is known and supported. */
export function usableClusters(
  examined: readonly ExaminedCluster[],
): readonly (ExaminedCluster & { server: ServerVersion })[] {
  return examined.filter((each): each is ExaminedCluster & { server: ServerVersion } => {
    return each.server !== null && isSupported(each.server);
  });
}

/**
 * Selects a PostgreSQL server of this machine by the options, or by the port in the configuration. Throws CommandError
 * if no usable server matches, or several do.
 */
export function chooseCluster(
  examined: readonly ExaminedCluster[],
  { cluster, port }: { cluster: string | undefined; port: number | undefined },
): LocalCluster {
  const matchingClusters = examined.filter(({ cluster: each }) => {
    return (cluster === undefined || each.name === cluster) && (port === undefined || each.port === port);
  });
  const usable = usableClusters(matchingClusters);
  if (usable.length === 1) return usable[0]!.cluster;
  if (usable.length > 1) {
    const lines = usable.map(({ cluster: each, server }) => {
      const option = each.name === null ? `--db-port ${each.port}` : `--cluster ${each.name}`;
      return `  ${option}: PostgreSQL ${server.version}, ${clusterLabel(each)}`;
    });
    const head = 'nothing was written: several PostgreSQL servers run on this machine, choose one:';
    throw new CommandError(exitCodes.usage, [head, ...lines].join('\n'));
  }
  const problems = matchingClusters.map(({ problem }) => problem).filter((problem) => problem !== null);
  const lacksRoot = matchingClusters.some((each) => !mayAdministerIfRunning(each.cluster));
  if (problems.length > 0) {
    throw new CommandError(lacksRoot ? exitCodes.notPermitted : exitCodes.unavailable, problems.join('\n'));
  }
  const criteria = [...(cluster === undefined ? [] : [cluster]), ...(port === undefined ? [] : [`on port ${port}`])];
  throw new CommandError(exitCodes.unavailable, noMatchingClusterSentence(examined, criteria.join(' ')));
}

function noMatchingClusterSentence(examined: readonly ExaminedCluster[], criteria: string): string {
  if (examined.length > 0) {
    const existingLabels = examined.map(({ cluster }) => clusterLabel(cluster)).join(', ');
    return `There is no PostgreSQL server ${criteria} on this machine; there is ${existingLabels}. A port in server.conf counts too.`;
  }
  return (
    'No PostgreSQL server was found on this machine. Install one with "sudo apt-get install postgresql" (11 or newer), ' +
    'or take the embedded one: "klatch setup --embedded".'
  );
}

/** The setup answer for a local database, with a report of what was created. */
export interface LocalDatabase {
  readonly answer: DatabaseSetupAnswer;
  readonly made: ProvisionedDatabase & { readonly label: string; readonly user: string; readonly db: string };
}

/**
 * Creates the role and the database with the names in the configuration or the options, and tests them. Throws a
 * CommandError with advice if that fails.
 */
export async function makeLocalDatabase(
  source: ConfigText,
  wanted: { cluster: LocalCluster; flags: DatabaseFlags; serverUid: number | null },
  env: CommandContext['env'],
): Promise<LocalDatabase> {
  const { cluster, flags, serverUid } = wanted;
  const db = existingAnswer(source, 'services.postgresql.db', env) ?? flags.db ?? databaseConnectionDefaults.db;
  const user = existingAnswer(source, 'services.postgresql.user', env) ?? flags.user ?? databaseConnectionDefaults.user;
  const host = requireLocalConfiguredHost(source, cluster, env);
  const password = existingAnswer(source, PASSWORD_SETTING, env) ?? (flags.password || null);
  if (password === '' && host?.startsWith('/') !== true) {
    const message = `${source.file} has an empty ${PASSWORD_SETTING}, with which nobody is let in over TCP: remove that line, then repeat this command.`;
    throw new CommandError(exitCodes.operationFailed, message);
  }
  const secret = existingAnswer(source, 'secret', env);
  try {
    const made = await provisionDatabase(cluster, { database: db, user, password, secret, serverUid, host });
    const answer = { host: made.host, port: made.port, db, user, password: made.password };
    return { answer, made: { ...made, label: clusterLabel(cluster), user, db } };
  } catch (error) {
    if (!(error instanceof LocalDatabaseError)) throw error;
    const exitCode = error.reason === 'refused' ? exitCodes.operationFailed : exitCodes.unavailable;
    throw new CommandError(exitCode, `${error.message}\n${source.file} was not written.`, { cause: error });
  }
}

/** The database's port in the configuration, by which a PostgreSQL server is selected; undefined: no port is set. */
export function configuredDatabasePort(source: ConfigText, env: CommandContext['env']): number | undefined {
  const port = existingAnswer(source, 'services.postgresql.port', env);
  return port === null ? undefined : Number(port);
}

/**
 * The database's host in the configuration; null: none is set. Throws CommandError if the host is another machine, or
 * if the configuration selects the embedded database.
 */
function requireLocalConfiguredHost(
  source: ConfigText,
  { socketDir }: LocalCluster,
  env: CommandContext['env'],
): string | null {
  if (isEmbedded(source)) {
    const message = `${source.file} has services.postgresql.embedded = true already. Nothing was changed: repeat this without --local-database and --cluster.`;
    throw new CommandError(exitCodes.operationFailed, message);
  }
  const host = existingAnswer(source, 'services.postgresql.host', env);
  if (host === null || ['localhost', '127.0.0.1', '::1', socketDir].includes(host)) return host;
  const message = `${source.file} names the database server ${host} already, which is not PostgreSQL on this machine. Nothing was changed: repeat this without --local-database and --cluster.`;
  throw new CommandError(exitCodes.operationFailed, message);
}

/**
 * The value of a key in the configuration, with environment variables substituted; null: the key has no value yet.
 * Throws CommandError if a variable is not set.
 */
function existingAnswer(source: ConfigText, key: SettingKey, env: CommandContext['env']): string | null {
  if (keyState(source, key) === 'open') return null;
  const { file } = source;
  const value = valueAt(
    readTreeFromSources([existsSync(file) ? { path: file } : { name: file, text: source.text }], env),
    key.split('.'),
  );
  const text = value === null || isPlaceholder(value) ? null : scalarText(value);
  if (text !== null) return text;
  if (value?.kind === 'array') return value.items.map(scalarText).join(', ');
  const message = `${file}: ${key} comes from the environment, which does not have it here: set that variable for this command too.`;
  throw new CommandError(exitCodes.usage, message);
}
