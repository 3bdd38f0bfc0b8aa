import type { z } from 'zod';
import type { Finding } from '../../doctor/finding.ts';
import type { serverStatus } from '../../operations/server/server-status.ts';
import { offlineSentence, type OfflineStatus } from './offline-status.ts';
import { errorSentence } from '../../../client/core/delivery-sentences.ts';
import { replaceControlCharacters } from '../../../client/core/safe-text.ts';
import { formatDuration, formatFields } from '../../../client/terminal/table.ts';

export type Status = z.infer<typeof serverStatus.output>;
type Deliveries = NonNullable<Status['deliveries']>;
type LastError = Deliveries['last_errors'][number];

/**
 * The output marks counts that are older than this. They are old because the database did not answer the server's last
 * query.
 */
const MAX_UNMARKED_COUNTS_AGE_MS = 15_000;

/** The lines that show the status of a running server. */
export function statusLines(status: Status): string[] {
  const { version, started_at, pid, listeners, base_uri, database, ready, deliveries } = status;
  const inFlight = status.deliveries_in_flight;
  const lines = formatFields([
    ['server', `Klatch ${version}, pid ${pid}, ${ready ? 'ready' : 'not ready'}`],
    ['up', `${formatDuration(Date.now() - Date.parse(started_at))}, since ${started_at}`],
    ['heap', `at most ${Math.round(status.heap_limit_bytes / 1024 ** 2)} MiB`],
    ['listens', `${listeners.join(', ')}, public as ${base_uri}`],
    ['metrics', status.metrics_url],
    ['database', `${database}, ${ready ? 'answers' : 'does not answer'}`],
    ...(status.database_servers.length === 0 ? [] : [databaseServersField(status.database_servers)]),
    ['waiting posts', status.waiting_posts],
    ['in flight', inFlight === 1 ? '1 delivery' : `${inFlight} deliveries`],
    ['hooks', deliveries === null ? null : describeHookCounts(deliveries)],
    ['pending', deliveries === null ? null : describePending(deliveries)],
  ]);
  const errors = (deliveries?.last_errors ?? []).map((each) => `  ${errorLine(each)}`);
  return errors.length === 0 ? lines : [...lines, 'last errors:', ...errors];
}

function databaseServersField(servers: Status['database_servers']): [string, string] {
  const states = servers.map(({ server, used, rejection }) => {
    return `${server} ${used ? 'is used' : rejection === null ? 'was not asked' : `is not used: ${rejection}`}`;
  });
  return ['db servers', replaceControlCharacters(states.join('; '))];
}

function describeHookCounts({ hooks, age_ms }: Deliveries): string {
  const counts = Object.entries(hooks).map(([state, count]) => `${count} ${state}`);
  const age = age_ms > MAX_UNMARKED_COUNTS_AGE_MS ? ` (as of ${formatDuration(age_ms)} ago)` : '';
  return `${counts.join(', ')}${age}`;
}

function describePending({ pending_hooks, oldest_pending_at }: Deliveries): string {
  if (pending_hooks === 0) return 'nothing';
  const hooksPhrase = pending_hooks === 1 ? '1 hook has' : `${pending_hooks} hooks have`;
  if (oldest_pending_at === null) return `${hooksPhrase} messages to deliver, paused`;
  return `${hooksPhrase} messages to deliver; the oldest has waited for ${formatDuration(Date.now() - Date.parse(oldest_pending_at))}`;
}

function errorLine({ at, hook, group, host, category, code }: LastError): string {
  const what = errorSentence({ category, code });
  return replaceControlCharacters(`${at}  hook ${hook} of group ${group} to ${host}: ${what}`);
}

/** The lines for a server that does not answer: why, and the problems that would prevent its start. */
export function offlineLines(offline: OfflineStatus, blockers: readonly Finding[]): string[] {
  const { lastRun, state } = offline;
  const fields = [['server', offlineSentence(offline)] as const];
  const hasEnded = ['stopped', 'failed', 'killed'].includes(state);
  const lines = formatFields([
    ...fields,
    ...(lastRun !== null && hasEnded ? [['last run', lastRunVersionAndPeriod(offline)] as const] : []),
  ]);
  if (blockers.length === 0) return lines;
  const blockerLines = blockers.flatMap(({ found, todo }) => [
    `  ${replaceControlCharacters(found)}`,
    ...(todo ? [`  -> ${todo}`] : []),
  ]);
  return [...lines, 'in the way of a start:', ...blockerLines];
}

function lastRunVersionAndPeriod({ lastRun, state }: OfflineStatus): string {
  const { version, pid, started_at, since, lastSeenAt } = lastRun!;
  const until = state === 'killed' ? lastSeenAt.toISOString() : since;
  return `Klatch ${version}, pid ${pid}, from ${started_at} to ${until}`;
}
