import type { Config } from '../config/config.ts';
import type { DatabaseReport } from '../storage/database-report.ts';
import { LONG_TRANSACTION_S } from '../storage/database-report.ts';
import type { ServerUse } from '../storage/db/server-group.ts';
import { countWithNoun, error, ok, warning, type CheckResult } from './finding.ts';
import { DEDICATED_DATABASE_CONNECTIONS } from './open-files.ts';

const MIN_SERVER_VERSION_NUMBER = 110_000;
const LOSS_REPORTED_FOR_MS = 30 * 24 * 60 * 60_000;
const LOSS_CONSEQUENCE = 'a crash can lose messages that were confirmed';

/** The values that a report of the database is compared with. */
interface DatabaseExpectation {
  readonly config: Config;
  /** The number of the schema that this program works with. */
  readonly newestSchema: number;
  readonly serverRuns: boolean;
}

/** The results about an answering database that prevent a server from starting on it. */
export function evaluateStartBlockers(report: DatabaseReport, expected: DatabaseExpectation): CheckResult[] {
  const { allowFsyncOff } = expected.config.postgresql;
  return [
    ...evaluateVersions(report, expected),
    ...evaluateSecret(report),
    ...evaluateWritability(report),
    ...(allowFsyncOff ? [] : evaluateFsync(report)),
  ];
}

/** All results about an answering database; the first one is an `ok` that describes it, unless there is an error. */
export function evaluateDatabase(report: DatabaseReport, expected: DatabaseExpectation): CheckResult[] {
  const results = [
    ...evaluateStartBlockers(report, expected),
    ...evaluateDataSafety(report, expected),
    ...evaluateLoss(report),
    ...evaluateConnections(report, expected),
    ...evaluateLocksAndTransactions(report),
  ];
  if (results.some(({ level }) => level === 'error')) return results;
  const kind = expected.config.postgresql.embedded ? ' (embedded)' : '';
  const { version, serverUses, schema, connections, connectionsTaken } = report;
  const state = schema === 0 ? 'without a schema yet' : `schema ${schema}`;
  const okText = `PostgreSQL ${version}${kind} answers${describeServers(serverUses)}, ${state}, ${connectionsTaken} of ${connections} connections taken`;
  return [ok(okText), ...results];
}

/**
 * The end of a sentence about the database servers. It is empty if one server is configured; otherwise it names the
 * server that is used, and why the others were rejected.
 */
function describeServers(uses: readonly ServerUse[]): string {
  if (uses.length === 1) return '';
  const rejected = uses.flatMap(({ server, rejection }) => (rejection === null ? [] : [`${server}: ${rejection}`]));
  const rejectedText = rejected.length === 0 ? '' : ` (${rejected.join('; ')})`;
  return ` at ${uses.find(({ isUsed }) => isUsed)?.server}${rejectedText}`;
}

function evaluateVersions(report: DatabaseReport, { newestSchema, serverRuns }: DatabaseExpectation): CheckResult[] {
  const found: CheckResult[] = [];
  if (report.versionNumber < MIN_SERVER_VERSION_NUMBER) {
    found.push(error(`PostgreSQL ${report.version} is too old`, 'Klatch needs PostgreSQL 11 or newer: upgrade it.'));
  }
  if (report.schemaMismatch !== null) {
    const { problemPhrase: what, remedy } = report.schemaMismatch;
    found.push(error(what, `${remedy.slice(0, 1).toUpperCase()}${remedy.slice(1)}.`));
  } else if (report.schema < newestSchema && serverRuns) {
    const what = `the database is at schema ${report.schema} and this Klatch knows ${newestSchema}`;
    found.push(warning(what, 'Restart the server: the start brings the database up to date.'));
  }
  return found;
}

function evaluateSecret({ secretFits }: DatabaseReport): CheckResult[] {
  if (secretFits !== false) return [];
  const todo = 'Put the old value of `secret` back into server.conf.';
  return [error('secret differs from the one this database was made with', todo)];
}

function evaluateWritability({ readOnly }: DatabaseReport): CheckResult[] {
  if (!readOnly) return [];
  const todo = 'Lead services.postgresql to the primary server, and look at default_transaction_read_only.';
  return [error('the database takes no writes: it is a standby, or read-only', todo)];
}

function evaluateFsync({ fsync }: DatabaseReport): CheckResult[] {
  if (fsync !== 'off') return [];
  const todo = 'Set fsync = on in PostgreSQL; services.postgresql.unsafe = true is for tests.';
  return [error(`fsync is off: ${LOSS_CONSEQUENCE}, and the server does not start`, todo)];
}

function evaluateDataSafety(report: DatabaseReport, { config }: DatabaseExpectation): CheckResult[] {
  const found: CheckResult[] = [];
  if (report.fsync === 'off' && config.postgresql.allowFsyncOff) {
    const todo = 'Set fsync = on in PostgreSQL, and take services.postgresql.unsafe out of server.conf.';
    found.push(error(`fsync is off, which services.postgresql.unsafe accepts: ${LOSS_CONSEQUENCE}`, todo));
  }
  if (report.fullPageWrites === 'off') {
    found.push(error(`full_page_writes is off: ${LOSS_CONSEQUENCE}`, 'Set full_page_writes = on in PostgreSQL.'));
  }
  if (report.encoding !== 'UTF8') {
    const todo = "Make the database with encoding 'UTF8' and move the data with pg_dump.";
    found.push(error(`the database's encoding is ${report.encoding}: not every message can be stored`, todo));
  }
  return found;
}

/** Reports lost history for 30 days after the loss, so that nobody has to search the log for it. */
function evaluateLoss({ loss }: DatabaseReport): CheckResult[] {
  if (loss === null || Date.now() - loss.at.getTime() > LOSS_REPORTED_FOR_MS) return [];
  const what = `history was lost: at ${loss.at.toISOString()} ${countWithNoun(loss.conversations, 'conversation')} lacked changes that had been committed`;
  const todo = 'Read "After a failover" in docs/database.md; the log of that time names conversations and numbers.';
  return [warning(what, todo)];
}

/**
 * Checks whether the database allows enough connections. Those of running Klatch servers count as free, since the
 * needed number includes them.
 */
function evaluateConnections(report: DatabaseReport, { config }: DatabaseExpectation): CheckResult[] {
  const needed = DEDICATED_DATABASE_CONNECTIONS + config.postgresql.generalPoolSize;
  const { connections, connectionsTaken, klatchConnections } = report;
  const free = connections - (connectionsTaken - klatchConnections);
  if (free >= needed) return [];
  const todo = 'Raise max_connections in PostgreSQL, or lower services.postgresql.pool-size.';
  const others = connectionsTaken - klatchConnections;
  const what = `Klatch needs ${needed} connections; of ${connections} others have ${others}`;
  return [connections < needed ? error(what, todo) : warning(what, todo)];
}

function evaluateLocksAndTransactions({ longTransactions, waitingLocks, blockerPids }: DatabaseReport): CheckResult[] {
  const found: CheckResult[] = [];
  if (longTransactions > 0) {
    const what = `${countWithNoun(longTransactions, 'transaction')} open for longer than ${LONG_TRANSACTION_S / 60} min`;
    const todo = 'Look into pg_stat_activity (xact_start): PostgreSQL cannot clear away old rows meanwhile.';
    found.push(warning(what, todo));
  }
  if (waitingLocks > 0) {
    const blockersText = blockerPids.length === 0 ? '' : `, held up by pid ${blockerPids.join(', ')} of PostgreSQL`;
    const todo = 'Run this again; if it stays, look at that session in pg_stat_activity and end what it does.';
    found.push(warning(`${countWithNoun(waitingLocks, 'lock')} waited for${blockersText}`, todo));
  }
  return found;
}
