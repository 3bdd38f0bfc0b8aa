import type { PostgresqlConfig } from '../config/services.ts';
import type { Log } from '../log.ts';
import type { ConnectionTarget } from './db/connection.ts';
import { Pool, type PoolMetrics } from './db/pool.ts';
import { ServerGroup, type ServerUse } from './db/server-group.ts';
import { requireWritable } from './db/writability.ts';
import { SettlementWriter } from './hooks/settlement-writer.ts';
import { Witness } from './messages/witness.ts';

/** The uses of the database that have connections of their own. */
const poolNames = ['intake', 'settle', 'lease', 'live', 'search', 'general'] as const;
type PoolName = (typeof poolNames)[number];

const MAX_WAITING_SEARCHES = 50;

/** The connections to the database, separate for each use: they share a server and nothing else. */
export class Database {
  /** The flushes of posts. It has one connection, so that they run one after the other. */
  readonly intake: Pool;
  /** The settlements of deliveries, which a thread of its own writes. */
  readonly settle: SettlementWriter;
  /**
   * Leases are renewed on a connection of their own: if a renewal waited for other work, the node could lose all its
   * leases.
   */
  readonly lease: Pool;
  /** The reads for live connections: their clients must not wait for other work. */
  readonly live: Pool;
  /** Full-text searches, which may be slow: they block only each other. */
  readonly search: Pool;
  /** All other uses of the database. */
  readonly general: Pool;
  readonly target: ConnectionTarget;
  /** The record of the newest changes that this process knows to be committed. */
  readonly witness = new Witness();

  constructor(target: ConnectionTarget, config: PostgresqlConfig, log: Log) {
    const { generalPoolSize, poolQueue: waiting, databaseCallTimeoutMs: timeoutMs, flushTimeoutMs } = config;
    this.target = target;
    this.intake = new Pool(target, {
      name: 'intake',
      maxConnections: 1,
      maxWaitingCalls: waiting,
      timeoutMs: flushTimeoutMs,
      forceGenericPlans: true,
    });
    this.settle = new SettlementWriter(target, { timeoutMs, log });
    this.lease = new Pool(target, {
      name: 'lease',
      maxConnections: 1,
      maxWaitingCalls: 8,
      timeoutMs: 2_500,
      ignoresTimelineGate: true,
    });
    this.live = new Pool(target, { name: 'live', maxConnections: 2, maxWaitingCalls: waiting, timeoutMs });
    this.search = new Pool(target, {
      name: 'search',
      maxConnections: 2,
      maxWaitingCalls: MAX_WAITING_SEARCHES,
      timeoutMs,
    });
    this.general = new Pool(target, {
      name: 'general',
      maxConnections: generalPoolSize,
      maxWaitingCalls: waiting,
      timeoutMs,
      onRevsCommitted: (revs) => this.witness.recordRevs(revs),
    });
  }

  /**
   * Sets the listener for a new timeline, after a standby was promoted or another copy of the database took its place.
   * Until the listener's promise resolves, only leases and notifications are written; if it rejects, the listener is
   * called again.
   */
  set onNewTimeline(listener: (timeline: number) => Promise<void>) {
    ServerGroup.of(this.target).onNewTimeline = listener;
  }

  /** The timeline that the primary reported last; 0: it reports none. */
  get timeline(): number {
    return ServerGroup.of(this.target).timeline ?? 0;
  }

  /** Which of the servers in the target is used, and why the others are not. */
  get serverUses(): readonly ServerUse[] {
    return ServerGroup.of(this.target).uses;
  }

  /**
   * Checks the database in one round trip; rejects if it is unavailable, takes no writes, or does not answer within
   * `timeoutMs`.
   */
  async ping(timeoutMs: number): Promise<void> {
    await this.general.run(requireWritable, timeoutMs);
  }

  /** All pools by name. */
  get pools(): readonly (readonly [name: PoolName, pool: PoolMetrics])[] {
    return poolNames.map((name) => [name, this[name]]);
  }

  /**
   * Closes every connection; calls in progress are rejected at once. Resolves when the thread of the settlements has
   * ended.
   */
  async stop(): Promise<void> {
    for (const pool of [this.intake, this.lease, this.live, this.search, this.general]) pool.stop();
    await this.settle.stop();
  }
}
