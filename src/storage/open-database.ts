import type { Config } from '../config/config.ts';
import type { Log } from '../log.ts';
import type { ConnectionTarget } from './db/connection.ts';
import { Database } from './database.ts';
import { startEmbedded, type EmbeddedOptions } from './embedded/embedded.ts';
import { EmbeddedSupervisor } from './embedded/supervisor.ts';
import { migrate } from './db/migrate.ts';
import { requireSessionPooling } from './db/pooler.ts';
import { createOrCheckCanary, type Sealer } from './db/sealed.ts';
import { readSupportedVersion, requireFsync } from './db/server-version.ts';

const PING_TIMEOUT_MS = 1_000;

export interface OpenDatabase {
  readonly database: Database;
  /** The migrations that this call applied. */
  readonly appliedMigrations: readonly string[];
  /** A text for people, such as "PostgreSQL 18.4, embedded". */
  readonly version: string;
  stop(): Promise<void>;
}

interface OpenDatabaseOptions {
  /** The sealer with which the configured secret is checked; null: the caller checks the secret. */
  readonly sealer: Sealer | null;
  readonly log: Log;
  /**
   * Called with the pools before they are used: stopping them aborts the opening, which may wait for another node's
   * migration.
   */
  readonly onConnecting?: (database: Database) => void;
  /** Returns true once the caller has given up the opening. */
  readonly isCancelled?: () => boolean;
}

/**
 * Connects to the configured database, or starts the embedded one; brings its schema up to date and checks the secret.
 * Rejects with EmbeddedError, DatabaseUnavailableError, DatabaseTooOldError, DatabaseUnsafeError,
 * TransactionPoolingError, IncompatibleSchemaError or WrongSecretError.
 */
export async function openDatabase(config: Config, options: OpenDatabaseOptions): Promise<OpenDatabase> {
  const { sealer, log, onConnecting, isCancelled = () => false } = options;
  const { target, stopEmbeddedPostgresql, superviseServer } = config.postgresql.embedded
    ? await openEmbedded(config, log, isCancelled)
    : {
        target: externalTarget(config),
        stopEmbeddedPostgresql: async () => {},
        superviseServer: () => async () => {},
      };
  const database = new Database(target, config.postgresql, log);
  onConnecting?.(database);
  try {
    // The version is checked before the migrations, which an older server would reject with a syntax error.
    const version = await database.general.run(readSupportedVersion);
    if (!config.postgresql.allowFsyncOff) await database.general.run(requireFsync);
    if (!config.postgresql.embedded) await requireSessionPooling(target, config.postgresql.databaseCallTimeoutMs);
    const applied = await migrate(database.intake, { onWaiting: (reason) => log.warn('waiting', { reason }) });
    for (const name of applied) log.info('the database schema was brought up to date', { migration: name });
    if (sealer !== null) await database.general.run((sql) => createOrCheckCanary(sql, sealer));
    const stopSupervised = superviseServer(database);
    return {
      database,
      appliedMigrations: applied,
      version: `PostgreSQL ${version}${config.postgresql.embedded ? ', embedded' : ''}`,
      stop: async () => {
        await database.stop();
        await stopSupervised();
      },
    };
  } catch (error) {
    await database.stop();
    await stopEmbeddedPostgresql();
    throw error;
  }
}

/** The connection target of a configuration that names an external database. */
export function externalTarget({ postgresql }: Config): ConnectionTarget {
  return { ...postgresql, database: postgresql.db };
}

interface OpenedEmbeddedServer {
  readonly target: ConnectionTarget;
  readonly stopEmbeddedPostgresql: () => Promise<void>;
  /** Supervises the server from now on; returns a function that stops the supervision and the server. */
  readonly superviseServer: (database: Database) => () => Promise<void>;
}

async function openEmbedded(config: Config, log: Log, isCancelled: () => boolean): Promise<OpenedEmbeddedServer> {
  const options: EmbeddedOptions = {
    dataDir: config.dataDir,
    binDir: config.postgresql.binDir,
    log: (event, fields) => log.info(event, fields),
  };
  const server = await startEmbedded({ ...options, isCancelled });
  const { socketDir, port, database, user } = server;
  const { connectTimeoutMs, lockTimeoutMs } = config.postgresql;
  return {
    target: { host: socketDir, port, database, user, password: '', connectTimeoutMs, lockTimeoutMs },
    stopEmbeddedPostgresql: () => server.stop(),
    superviseServer: (openedDatabase) => {
      const supervisor = new EmbeddedSupervisor(server, options, () => openedDatabase.ping(PING_TIMEOUT_MS));
      return () => supervisor.stop();
    },
  };
}
