import type { DeliveryReportCache } from '../operations/core/delivery-report-cache.ts';
import type { Database } from '../storage/database.ts';
import type { PoolMetrics } from '../storage/db/pool.ts';
import { counter, gauge, histogram, singleSample, type MetricFamily, type MetricSample } from './family.ts';

/** Metrics on the connections and calls of this process to the database. */
export function databaseFamilies({ pools }: Database, report: DeliveryReportCache): MetricFamily[] {
  const labels = ['pool'];
  const collectPerPool = <Value>(readValue: (pool: PoolMetrics) => Value) => {
    return (): readonly MetricSample<Value>[] =>
      pools.map(([name, pool]) => ({ labels: { pool: name }, value: readValue(pool) }));
  };
  return [
    gauge(
      { name: 'klatch_database_up', help: 'Whether the database has answered within the last 10 s: 1, else 0.' },
      async () => singleSample((await report.read())?.isFresh === true ? 1 : 0),
    ),
    gauge(
      { name: 'klatch_pool_connections', help: 'Connections that a pool has.', labels },
      collectPerPool((pool) => pool.maxConnections),
    ),
    gauge(
      { name: 'klatch_pool_busy_connections', help: 'Connections of a pool that are in use.', labels },
      collectPerPool((pool) => pool.busyConnections),
    ),
    gauge(
      { name: 'klatch_pool_waiting_calls', help: 'Calls that wait for a connection of a pool.', labels },
      collectPerPool((pool) => pool.waitingCalls),
    ),
    histogram(
      {
        name: 'klatch_pool_wait_duration_seconds',
        help: 'How long those calls waited that found no connection of a pool free, and got one.',
        labels,
      },
      collectPerPool((pool) => pool.counts.waitS.read()),
    ),
    counter(
      {
        name: 'klatch_pool_rejections_total',
        help: 'Calls that got no connection of a pool: too many waited, or none was free in time.',
        labels,
      },
      collectPerPool((pool) => pool.counts.refusedCalls),
    ),
  ];
}

/** Metrics on lost history: whether changes were found missing. */
export function lostHistoryFamilies({ witness }: Database): MetricFamily[] {
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
