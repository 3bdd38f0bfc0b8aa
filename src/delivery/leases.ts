import type { Log } from '../log.ts';
import {
  claimPartitions,
  findMsUntilPeerExpiry,
  releaseAllPartitions,
  releasePartitions,
  renewPartitions,
  type HeldPartition,
} from '../storage/hooks/leases.ts';
import type { Sql } from '../storage/db/connection.ts';
import { PARTITIONS } from '../storage/hooks/lanes.ts';
import { listMigrations } from '../storage/db/migration-files.ts';
import { checkSchemaReturningVersion, IncompatibleSchemaError } from '../storage/db/schema-compatibility.ts';
import { heartbeatAndListLiveNodes, deleteNode } from '../storage/hooks/nodes.ts';
import type { Pool } from '../storage/db/pool.ts';
import { leastBusy, fairShare } from './partition-assignment.ts';

const LEASE_MS = 10_000;
const RENEW_INTERVAL_MS = 3_000;
/**
 * The node does not use this last part of a lease. So a write that left before it also arrives before the lease ends.
 */
const LEASE_SAFETY_MARGIN_MS = 2_000;
/** Calls of `trigger` within this time cause one round of queries together. */
const DEBOUNCE_MS = 50;

export interface LeaseEvents {
  /**
   * Called when this node gained these partitions, or holds them again after its lease had lapsed. Its rows of their
   * hooks may be out of date.
   */
  readonly onGainedOrRegained: (partitions: readonly number[]) => void;
  /** Called when this node lost the leases of these partitions. */
  readonly onLost: (partitions: readonly number[]) => void;
  /**
   * Called when other nodes are to get these partitions: their lanes must start no new attempt. A partition's promise
   * resolves when none of its attempts is in flight or unsettled. The time-outs of the attempts bound that wait, and
   * lanes that wait for a slot do not extend it.
   */
  readonly onHandover: (partitions: readonly number[]) => ReadonlyMap<number, Promise<void>>;
  /** Returns the number of lanes with something to do, by partition. */
  readonly busyLanesByPartition: () => ReadonlyMap<number, number>;
  /** Notifies other nodes that they should check the leases now. */
  readonly notifyPeers: () => void;
  /** Called when another program has changed the schema: this process must stop. */
  readonly onIncompatibleSchema: (error: IncompatibleSchemaError) => void;
}

/** The results of one round of queries. */
interface RenewalRound {
  readonly fairPartitionCount: number;
  readonly keptPartitions: readonly number[];
  readonly claimed: readonly HeldPartition[];
  readonly released: readonly HeldPartition[];
  readonly nextPeerExpiryMs: number | null;
}

/**
 * Acquires, renews and releases this node's leases of partitions. Before each attempt a lane calls `usableEpochOf`,
 * which checks the lease's end by two clocks. The monotonic clock continues while the process is stopped, the wall
 * clock while the machine sleeps.
 *
 * Nodes hold equal shares. A node with more than its share releases the surplus. It releases a partition only when
 * nothing of it is in flight or unsettled, so that the next holder neither repeats nor overtakes anything.
 */
export class Leases {
  readonly #pool: Pool;
  readonly #holder: string;
  readonly #events: LeaseEvents;
  readonly #log: Log;
  readonly #epochByPartition = new Map<number, number>();
  /** Partitions that this node still holds, but is releasing: no new attempt starts in them. */
  readonly #handingOver = new Set<number>();
  /** Partitions of `#handingOver` that have no attempt in flight or unsettled, so that the next round releases them. */
  readonly #drained = new Set<number>();
  readonly #migrations = listMigrations();
  readonly #timeline: () => number;
  #usableUntil = { monotonic: 0, wall: 0 };
  /** After a change of the timeline, this node claims no partition before this time of the monotonic clock. */
  #oldTimelineLeasesExpireAtMs = 0;
  #nodeCount = 1;
  #timer: NodeJS.Timeout | null = null;
  #round: Promise<void> | null = null;
  /**
   * True: the next round of queries begins within `DEBOUNCE_MS`, or within that time after the end of the current
   * round.
   */
  #promptRoundRequested = false;
  #leaving = false;
  #stopped = true;

  /**
   * `holder` is the identity of the data directory, whose lock only one process at a time can hold. `timeline` returns
   * the database's timeline, 0 if unknown.
   */
  constructor(options: { pool: Pool; holder: string; events: LeaseEvents; log: Log; timeline?: () => number }) {
    this.#pool = options.pool;
    this.#holder = options.holder;
    this.#events = options.events;
    this.#log = options.log;
    this.#timeline = options.timeline ?? (() => 0);
  }

  /** Claims free partitions and starts to renew them. Resolves after the first round of queries. */
  async start(): Promise<void> {
    if (!this.#stopped) return;
    this.#stopped = false;
    this.#round = this.#renew();
    await this.#round;
    this.#events.notifyPeers();
  }

  /** Begins to release all partitions, each when it has no attempt in flight or unsettled. `stop` releases the rest. */
  leave(): void {
    if (this.#leaving || this.#stopped) return;
    this.#leaving = true;
    this.#handOver(this.partitionsNotHandingOver);
    this.trigger();
  }

  /** Stops renewing and releases all remaining partitions. The caller stops the lanes first. */
  async stop(): Promise<void> {
    if (this.#stopped) return;
    this.#stopped = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    await this.#round;
    this.#epochByPartition.clear();
    try {
      await this.#pool.run(async (sql) => {
        await deleteNode(sql, this.#holder);
        await releaseAllPartitions(sql, this.#holder);
      });
      this.#events.notifyPeers();
    } catch (error) {
      this.#log.info('the leases could not be given back: they end by themselves', { error });
    }
  }

  /** The partitions that this node holds and is not releasing. */
  get partitionsNotHandingOver(): number[] {
    return [...this.#epochByPartition.keys()].filter((partition) => !this.#handingOver.has(partition));
  }

  /** The epoch of a partition if it may be used right now, else null. */
  usableEpochOf(partition: number): number | null {
    const { monotonic, wall } = this.#usableUntil;
    if (performance.now() >= monotonic || Date.now() >= wall || this.#handingOver.has(partition)) return null;
    return this.#epochByPartition.get(partition) ?? null;
  }

  /** Runs the next round soon instead of at its scheduled time. */
  trigger(): void {
    // A second call does not delay the round: each round renews the leases, which would else expire.
    if (this.#promptRoundRequested) return;
    this.#promptRoundRequested = true;
    if (this.#round === null) this.#schedule(DEBOUNCE_MS);
  }

  /**
   * For a new timeline: gives up all partitions at once. Claims partitions again after `LEASE_MS`, when all leases of
   * the old timeline have expired. The new primary's lease rows are no proof of that: it may lack the last claims, and
   * its clock may be ahead.
   */
  suspendUntilLeasesExpire(): void {
    if (this.#stopped) return;
    this.#oldTimelineLeasesExpireAtMs = performance.now() + LEASE_MS;
    this.#usableUntil = { monotonic: 0, wall: 0 };
    this.trigger();
  }

  get #isAwaitingOldTimelineExpiry(): boolean {
    return performance.now() < this.#oldTimelineLeasesExpireAtMs;
  }

  async #renew(): Promise<void> {
    const requestedAt = { monotonic: performance.now(), wall: Date.now() };
    const wasValid = requestedAt.monotonic < this.#usableUntil.monotonic && requestedAt.wall < this.#usableUntil.wall;
    let nextRoundInMs = RENEW_INTERVAL_MS;
    try {
      const round = await this.#pool.run((sql) => this.#runRoundQueries(sql));
      const validMs = LEASE_MS - LEASE_SAFETY_MARGIN_MS;
      this.#applyRoundReportingLost(round, {
        monotonic: requestedAt.monotonic + validMs,
        wall: requestedAt.wall + validMs,
      });
      const { claimed, keptPartitions: kept, fairPartitionCount } = round;
      if (claimed.length > 0) this.#events.onGainedOrRegained(claimed.map((c) => c.partition));
      // This node's leases had lapsed: other nodes may have changed hooks meanwhile, so the lanes must read their rows
      // again.
      const ours = this.partitionsNotHandingOver;
      if (!wasValid && kept.length > 0) this.#events.onGainedOrRegained(ours);
      if (ours.length > fairPartitionCount)
        this.#handOver(leastBusy(ours, ours.length - fairPartitionCount, this.#events.busyLanesByPartition()));
      if (round.released.length > 0) this.#events.notifyPeers();
      if (this.#isAwaitingOldTimelineExpiry)
        nextRoundInMs = Math.min(nextRoundInMs, this.#oldTimelineLeasesExpireAtMs - performance.now() + DEBOUNCE_MS);
      // If a lease of another node ends before this node's next round, that node is dead: a live one renews far
      // earlier. So this node runs the next round at that end.
      if (round.nextPeerExpiryMs !== null)
        nextRoundInMs = Math.min(nextRoundInMs, Math.max(round.nextPeerExpiryMs, 0) + DEBOUNCE_MS);
    } catch (error) {
      if (error instanceof IncompatibleSchemaError) this.#events.onIncompatibleSchema(error);
      this.#log.warn('the leases of the lanes cannot be renewed', { error });
      nextRoundInMs = RENEW_INTERVAL_MS / 3;
    }
    this.#round = null;
    this.#schedule(this.#promptRoundRequested ? DEBOUNCE_MS : nextRoundInMs);
  }

  async #runRoundQueries(sql: Sql): Promise<RenewalRound> {
    await checkSchemaReturningVersion(sql, this.#migrations);
    const fairPartitionCount = await this.#joinOrLeaveAndComputeShare(sql);
    if (this.#isAwaitingOldTimelineExpiry)
      return { fairPartitionCount, keptPartitions: [], claimed: [], released: [], nextPeerExpiryMs: null };
    const released = this.#withEpochs([...this.#drained]);
    if (released.length > 0) await releasePartitions(sql, this.#holder, released);
    const releasedSet = new Set(released.map((r) => r.partition));
    const held = this.#withEpochs(
      [...this.#epochByPartition.keys()].filter((partition) => !releasedSet.has(partition)),
    );
    const kept = held.length === 0 ? [] : await renewPartitions(sql, this.#holder, held, LEASE_MS);
    const maxClaimedPartitions =
      fairPartitionCount - kept.filter((partition) => !this.#handingOver.has(partition)).length;
    const alreadyHeldPartitions = [...this.#epochByPartition.keys()];
    const claimRequest = {
      holder: this.#holder,
      alreadyHeldPartitions,
      maxClaimedPartitions: Math.max(0, maxClaimedPartitions),
      leaseMs: LEASE_MS,
      timeline: this.#timeline(),
    };
    const claimed =
      this.#leaving || alreadyHeldPartitions.length === PARTITIONS ? [] : await claimPartitions(sql, claimRequest);
    return {
      fairPartitionCount,
      keptPartitions: kept,
      claimed,
      released,
      nextPeerExpiryMs: await findMsUntilPeerExpiry(sql, this.#holder),
    };
  }

  async #joinOrLeaveAndComputeShare(sql: Sql): Promise<number> {
    if (this.#leaving) {
      await deleteNode(sql, this.#holder);
      return 0;
    }
    const nodes = await heartbeatAndListLiveNodes(sql, this.#holder, LEASE_MS);
    // `#nodeCount` begins with 1, so that a node that is alone from the start logs nothing.
    if (nodes.length !== this.#nodeCount) this.#log.info('nodes share the lanes', { nodes: nodes.length });
    this.#nodeCount = nodes.length;
    return fairShare(this.#holder, nodes);
  }

  #withEpochs(partitions: readonly number[]): HeldPartition[] {
    return partitions.map((partition) => ({ partition, epoch: this.#epochByPartition.get(partition)! }));
  }

  #applyRoundReportingLost(
    { keptPartitions: kept, claimed, released }: RenewalRound,
    usableUntil: { monotonic: number; wall: number },
  ): void {
    for (const { partition } of released) this.#forget(partition);
    const stays = new Set(kept);
    const lost = [...this.#epochByPartition.keys()].filter((partition) => !stays.has(partition));
    for (const partition of lost) this.#forget(partition);
    for (const { partition, epoch } of claimed) this.#epochByPartition.set(partition, epoch);
    // If a round was running when the suspension began, it may have renewed leases in the old timeline, but claimed in
    // the new one. So its leases are not used.
    if (!this.#isAwaitingOldTimelineExpiry) this.#usableUntil = usableUntil;
    if (lost.length > 0) this.#events.onLost(lost);
  }

  #forget(partition: number): void {
    this.#epochByPartition.delete(partition);
    this.#handingOver.delete(partition);
    this.#drained.delete(partition);
  }

  #handOver(partitions: readonly number[]): void {
    if (partitions.length === 0) return;
    for (const partition of partitions) this.#handingOver.add(partition);
    for (const [partition, drained] of this.#events.onHandover(partitions)) {
      void this.#markDrainedWhen(drained, { partition, epoch: this.#epochByPartition.get(partition)! });
    }
  }

  async #markDrainedWhen(drained: Promise<void>, { partition, epoch }: HeldPartition): Promise<void> {
    try {
      await drained;
    } catch (error) {
      // The partition is released nevertheless: its next holder may succeed where this node failed.
      this.#log.error('the lanes of a partition could not be ended before it is given back', { partition, error });
    }
    // If this node lost the partition and gained it again meanwhile, it holds a new lease, whose lanes did not stop.
    if (!this.#handingOver.has(partition) || this.#epochByPartition.get(partition) !== epoch) return;
    this.#drained.add(partition);
    this.trigger();
  }

  #schedule(ms: number): void {
    if (this.#stopped) return;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.#promptRoundRequested = false;
      this.#round = this.#renew();
    }, ms);
  }
}
