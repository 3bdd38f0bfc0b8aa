import type { DeliveryReportCache } from '../operations/core/delivery-report-cache.ts';
import type { Database } from '../storage/database.ts';
import type { PoolMetrics } from '../storage/db/pool.ts';
import { counter, gauge, histogram, singleSample, type Family, type Sample } from './family.ts';

/** Metrics on the connections and calls of this process to the database. */
export function databaseFamilies({ pools }: Database, report: DeliveryReportCache): Family[] {
  const labels = ['pool'];
  const eachPool = <Value>(value: (pool: PoolMetrics) => Value) => {
    return (): readonly Sample<Value>[] =>
      pools.map(([name, pool]) => ({ labels: { pool: name }, value: value(pool) }));
  };
  return [
    gauge(
      { name: 'klatch_database_up', help: 'Whether the database has answered within the last 10 s: 1, else 0.' },
      async () => singleSample((await report.read())?.isFresh === true ? 1 : 0),
    ),
    gauge(
      { name: 'klatch_pool_connections', help: 'Connections that a pool has.', labels },
      eachPool((pool) => pool.size),
    ),
    gauge(
      { name: 'klatch_pool_busy_connections', help: 'Connections of a pool that are in use.', labels },
      eachPool((pool) => pool.busy),
    ),
    gauge(
      { name: 'klatch_pool_waiting_calls', help: 'Calls that wait for a connection of a pool.', labels },
      eachPool((pool) => pool.waiting),
    ),
    histogram(
      {
        name: 'klatch_pool_wait_duration_seconds',
        help: 'How long those calls waited that found no connection of a pool free, and got one.',
        labels,
      },
      eachPool((pool) => pool.counts.waitS.read()),
    ),
    counter(
      {
        name: 'klatch_pool_rejections_total',
        help: 'Calls that got no connection of a pool: too many waited, or none was free in time.',
        labels,
      },
      eachPool((pool) => pool.counts.refused),
    ),
  ];
}

/** Metrics on lost history: whether changes were found missing. */
export function lostHistoryFamilies({ witness }: Database): Family[] {
  return [
    gauge(
      {
        name: 'klatch_log_epoch',
        help: 'Epoch of the log: 0, else the minute (Unix time) in which changes were last found missing, or may be.',
      },
      () => singleSample(witness.logEpoch),
    ),
    counter(
      {
        name: 'klatch_lost_history_conversations_total',
        help: 'Conversations in which the database lacked changes that this process knew to have been committed.',
      },
      () => singleSample(witness.losses.conversations),
    ),
    gauge(
      {
        name: 'klatch_lost_history_timestamp_seconds',
        help: 'When this process last found such a conversation (Unix time); 0: never since its start.',
      },
      () => singleSample(witness.losses.lastAtMs / 1_000),
    ),
  ];
}
