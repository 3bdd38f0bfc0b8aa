import { setTimeout as delay } from 'node:timers/promises';
import { Connection, type Sql } from '../db/connection.ts';
import { DatabaseUnavailableError, sqlState } from '../db/database-error.ts';
import { SUPERUSER } from './cluster.ts';
import { findPostmaster, type Postmaster } from './postmaster.ts';

/**
 * The role and the database with which Klatch connects. It is an ordinary role, so that an SQL injection in Klatch
 * gives no access to the machine.
 */
export const APP_DATABASE_ROLE = 'klatch';
export const APP_DATABASE = 'klatch';

const MIN_POLL_MS = 10;
const MAX_POLL_MS = 250;
const PROGRESS_INTERVAL_MS = 5_000;
const QUERY_TIMEOUT_MS = 30_000;
/** A server that has reported itself as ready, but cannot be reached for this long, has lost its socket. */
const UNREACHABLE_TIMEOUT_MS = 2_000;
/** PostgreSQL's code `cannot_connect_now`: the server starts, recovers or stops. */
const CANNOT_CONNECT_SQLSTATE = '57P03';

interface ReadinessOptions {
  readonly clusterDir: string;
  /** True once the server's process has ended. */
  readonly hasEnded: () => boolean | Promise<boolean>;
  readonly deadlineMs: number;
  /** The deadline for a server that recovers: recovery takes longer the more it has to redo. */
  readonly recoveryDeadlineMs: number;
  /** True once the caller has given up waiting. */
  readonly isCancelled: () => boolean;
  /** Called every few seconds while the wait lasts. */
  readonly onProgress: (fields: Record<string, unknown>) => void;
}

/** The result of the wait for a server; `timeout` carries the server's state. */
export type ReadinessResult =
  | { readonly kind: 'ready'; readonly postmaster: Postmaster; readonly version: string }
  | { readonly kind: 'ended' }
  | { readonly kind: 'unreachable'; readonly reason: string }
  | { readonly kind: 'timeout'; readonly status: string };

/**
 * Waits until the postmaster `pid` answers, and creates the application's role and database when they are missing. It
 * connects only once the pid file contains "ready", since each earlier attempt would leave a line in the server's log.
 */
export async function waitUntilReady(pid: number, options: ReadinessOptions): Promise<ReadinessResult> {
  const started = performance.now();
  let nextProgress = started + PROGRESS_INTERVAL_MS;
  let unreachableSince: number | null = null;
  let status = 'starting';
  for (let pollMs = MIN_POLL_MS; ; pollMs = Math.min(pollMs * 1.5, MAX_POLL_MS)) {
    if (await options.hasEnded()) return { kind: 'ended' };
    const postmaster = await findPostmaster(options.clusterDir);
    if (postmaster?.pid === pid) status = postmaster.status;
    if (postmaster?.pid === pid && status === 'ready') {
      try {
        return { kind: 'ready', postmaster, version: await ensureDatabaseAndReadVersion(postmaster) };
      } catch (error) {
        if (!(error instanceof DatabaseUnavailableError)) throw error;
        // A server recovers after one of its sessions crashed, although its pid file still contains "ready": it counts
        // as starting.
        if (sqlState(error.cause) === CANNOT_CONNECT_SQLSTATE) {
          status = 'starting';
          unreachableSince = null;
        } else unreachableSince ??= performance.now();
        if (unreachableSince !== null && performance.now() - unreachableSince >= UNREACHABLE_TIMEOUT_MS)
          return { kind: 'unreachable', reason: error.message };
      }
    }
    const now = performance.now();
    const deadlineMs = status === 'starting' ? options.recoveryDeadlineMs : options.deadlineMs;
    if (now >= deadlineMs || options.isCancelled()) return { kind: 'timeout', status };
    if (now >= nextProgress) {
      options.onProgress({ pid, status, elapsedMs: Math.round(now - started) });
      nextProgress = now + PROGRESS_INTERVAL_MS;
    }
    await delay(pollMs);
  }
}

/** Connects as the superuser, creates role and database if missing, and resolves with the server's version. */
async function ensureDatabaseAndReadVersion({ socketDir, port }: Postmaster): Promise<string> {
  const superuserTarget = {
    host: socketDir,
    port,
    database: 'postgres',
    user: SUPERUSER,
    password: '',
    connectTimeoutMs: 5_000,
    lockTimeoutMs: 5_000,
  };
  const connection = new Connection(superuserTarget, 'embedded');
  try {
    return await connection.run(ensureRoleDatabaseAndReadVersion, QUERY_TIMEOUT_MS);
  } finally {
    connection.close();
  }
}

async function ensureRoleDatabaseAndReadVersion(sql: Sql): Promise<string> {
  const [found] = await sql<{ version: string; role: boolean; database: boolean }[]>`
    select current_setting('server_version') as version,
           exists (select from pg_roles where rolname = ${APP_DATABASE_ROLE}) as role,
           exists (select from pg_database where datname = ${APP_DATABASE}) as database`;
  if (found === undefined) throw new Error('PostgreSQL answered no row to a query that always has one');
  if (!found.role) {
    // `log_min_messages` keeps the errors of this role's statements out of the server's log, since their texts quote
    // values. Klatch gets the errors anyway.
    await sql.begin(async (tx) => {
      await tx`create role ${tx(APP_DATABASE_ROLE)} login`;
      await tx`alter role ${tx(APP_DATABASE_ROLE)} set log_min_messages = 'log'`;
    });
  }
  if (!found.database) {
    await sql`create database ${sql(APP_DATABASE)} owner ${sql(APP_DATABASE_ROLE)} template template0 encoding 'UTF8'`;
  }
  return found.version.split(' ')[0] ?? found.version;
}
