import type { Config } from '../config/config.ts';
import type { ConnectionTarget } from '../storage/db/connection.ts';
import { DatabaseUnavailableError, CommitUnknownError, sqlState } from '../storage/db/database-error.ts';
import { reportDatabase, type DatabaseReport } from '../storage/database-report.ts';
import { EmbeddedError } from '../storage/embedded/embedded-error.ts';
import { inspectEmbeddedPostgresql } from '../storage/embedded/inspection.ts';
import { readPushReport, type DevicesAndLongPendingReport } from '../storage/push/device-report.ts';
import { reportRefusedPosts, type RefusedPostReport } from '../storage/groups/refused-post-report.ts';
import { reportHooks, type HookHostsAndFailuresReport } from '../storage/hooks/hook-report.ts';
import {
  requireSessionPooling,
  TRANSACTION_POOLING_SENTENCE,
  TRANSACTION_POOLING_REMEDY,
  TransactionPoolingError,
} from '../storage/db/pooler.ts';
import { newestSchemaVersion } from '../storage/db/migration-files.ts';
import { reportReplication } from '../storage/replication-report.ts';
import { externalTarget } from '../storage/open-database.ts';
import { Sealer } from '../storage/db/sealed.ts';
import { evaluateDatabase, evaluateStartBlockers } from './database.ts';
import { error, ok, skipped, unexpectedErrorResult, type CheckResult } from './finding.ts';
import { MAX_CHECKED_HOSTS } from './hook-addresses.ts';
import { MAX_LISTED_FAILING_HOOKS, RECENTLY_REMOVED_DAYS } from './hooks.ts';
import { PUSH_OVERDUE_MS } from './push.ts';
import { MAX_LISTED_REFUSING_GROUPS, RECENTLY_REFUSED_HOURS } from './refused-posts.ts';
import { evaluateHostNames, evaluateReplication } from './replication.ts';

const REPORT_TIMEOUT_MS = 5_000;
/**
 * The time-out of each of the three steps of `reportReplication`. These steps and the other queries share the time of
 * one check.
 */
const REPLICATION_TIMEOUT_MS = 1_500;
const POOLING_CHECK_TIMEOUT_MS = 3_000;

/** The results about the database, and the reports that other checks use. */
export interface DatabaseFacts {
  readonly verdicts: readonly CheckResult[];
  /** The results that prevent a server from starting. */
  readonly startBlockers: readonly CheckResult[];
  /** The state of the database server; null: the database did not answer, or does not run. */
  readonly report: DatabaseReport | null;
  /**
   * The report on hooks; null: `report` is null, or the database has no tables, or a schema that this program does not
   * know.
   */
  readonly hooks: HookHostsAndFailuresReport | null;
  /** Null: `hooks` is null, or the schema is older than this program's. */
  readonly push: DevicesAndLongPendingReport | null;
  /** Null: `hooks` is null, or the schema is older than this program's. */
  readonly refusedPosts: RefusedPostReport | null;
}

/** The values of the reports if none could be made. */
export const NO_REPORTS = { report: null, hooks: null, push: null, refusedPosts: null } as const;

/** Examines the configured database. An embedded one is examined only if it runs, since the check must not start it. */
export async function collectDatabaseFacts(config: Config, serverRuns: boolean): Promise<DatabaseFacts> {
  try {
    const locatedDatabase = await locateDatabase(config, serverRuns);
    if (locatedDatabase.target !== null)
      return await queryAndEvaluateReports(locatedDatabase.target, config, serverRuns);
    return { ...NO_REPORTS, verdicts: locatedDatabase.verdicts, startBlockers: [] };
  } catch (cause) {
    const verdicts = [failureResult(cause, config, serverRuns)];
    return { ...NO_REPORTS, verdicts, startBlockers: verdicts.filter(({ level }) => level === 'error') };
  }
}

async function locateDatabase(
  config: Config,
  serverRuns: boolean,
): Promise<{ target: ConnectionTarget | null; verdicts: readonly CheckResult[] }> {
  if (!config.postgresql.embedded) {
    const target = externalTarget(config);
    await requireSessionPooling(target, POOLING_CHECK_TIMEOUT_MS);
    return { target, verdicts: [] };
  }
  const {
    postgresqlVersion: version,
    binDir,
    clusterExists: exists,
    target,
  } = await inspectEmbeddedPostgresql(config.dataDir, config.postgresql);
  if (target !== null) return { target, verdicts: [] };
  if (serverRuns && exists) {
    const todo = 'Klatch starts it again by itself; if it does not come, look into postgresql.log in data-dir.';
    return { target, verdicts: [error('the embedded database does not run', todo)] };
  }
  const state = exists ? 'it is stopped, as the server is, and a start runs it' : 'the first start makes it';
  return { target, verdicts: [ok(`embedded: ${state} with PostgreSQL ${version} in ${binDir}`)] };
}

async function queryAndEvaluateReports(
  target: ConnectionTarget,
  config: Config,
  serverRuns: boolean,
): Promise<DatabaseFacts> {
  const newestSchema = newestSchemaVersion();
  const report = await reportDatabase(target, { sealer: new Sealer(config.secret), timeoutMs: REPORT_TIMEOUT_MS });
  const expected = { config, newestSchema, serverRuns };
  const baseFacts = {
    verdicts: [...evaluateDatabase(report, expected), ...(await examineReplication(target, config))],
    startBlockers: evaluateStartBlockers(report, expected),
    report,
  };
  if (report.schema === 0 || report.schemaMismatch !== null) return { ...NO_REPORTS, ...baseFacts };
  const hookReportBounds = {
    hosts: MAX_CHECKED_HOSTS + 1,
    failing: MAX_LISTED_FAILING_HOOKS,
    removedDays: RECENTLY_REMOVED_DAYS,
    timeoutMs: REPORT_TIMEOUT_MS,
  };
  const hooks = await reportHooks(target, hookReportBounds);
  if (report.schema < newestSchema) return { ...NO_REPORTS, ...baseFacts, hooks };
  const push = await readPushReport(target, { longPendingMs: PUSH_OVERDUE_MS, timeoutMs: REPORT_TIMEOUT_MS });
  const refusedPosts = await reportRefusedPosts(target, {
    withinHours: RECENTLY_REFUSED_HOURS,
    maxGroups: MAX_LISTED_REFUSING_GROUPS,
    timeoutMs: REPORT_TIMEOUT_MS,
  });
  return { ...baseFacts, hooks, push, refusedPosts };
}

/**
 * Results about replication: what a failover would lose, and what a missing standby blocks. There are none for the
 * embedded database, which has no standby.
 */
async function examineReplication(target: ConnectionTarget, { postgresql }: Config): Promise<CheckResult[]> {
  if (postgresql.embedded) return [];
  const [names, report] = await Promise.all([
    evaluateHostNames([target.host, ...(target.otherHosts ?? []).map(({ host }) => host)]),
    // Some cloud providers refuse the functions that report replication. That must not hide the other results.
    reportReplication(target, REPLICATION_TIMEOUT_MS).catch(() => null),
  ]);
  return [...names, ...(report === null ? [] : evaluateReplication(report))];
}

function failureResult(cause: unknown, { dataDir, postgresql }: Config, serverRuns: boolean): CheckResult {
  const noAccessResult = skipped(`${dataDir} is closed to this user: run it as root, or as the user of the server`);
  const todo = postgresql.embedded
    ? 'Look into postgresql.log in data-dir.'
    : 'Check that PostgreSQL runs and that services.postgresql in server.conf leads to it.';
  // The running server proves that its own user may read the database's files: only the user of this command may not.
  if (cause instanceof EmbeddedError && cause.code === 'owner-mismatch' && serverRuns) return noAccessResult;
  if (cause instanceof EmbeddedError) return error(cause.message, 'The server cannot start until this is put right.');
  if (cause instanceof DatabaseUnavailableError || cause instanceof CommitUnknownError)
    return error(cause.message, todo);
  if (cause instanceof TransactionPoolingError) return error(TRANSACTION_POOLING_SENTENCE, TRANSACTION_POOLING_REMEDY);
  const state = sqlState(cause);
  if (state !== null) return error(`the database refused to be examined (SQLSTATE ${state})`, todo);
  const { code } = cause as NodeJS.ErrnoException;
  return code === 'EACCES' ? noAccessResult : unexpectedErrorResult(cause);
}
