import type { Log } from '../log.ts';
import {
  claimPartitions,
  nextPeerExpiryMs,
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
/** The node does not use the last part of a lease, so that a write that left in time also arrives in time. */
const LEASE_SAFETY_MARGIN_MS = 2_000;
/** Calls of `trigger` within this time share one round of queries. */
const DEBOUNCE_MS = 50;

export interface LeaseEvents {
  /**
   * This node gained these partitions, or holds them again after a lapse: what it remembers of their hooks may be out
   * of date.
   */
  readonly onGainedOrRegained: (partitions: readonly number[]) => void;
  /** Another node holds these partitions now. */
  readonly onLost: (partitions: readonly number[]) => void;
  /**
   * Other nodes get these partitions, whose lanes must start nothing new. A partition's promise resolves when none of
   * its attempts is in flight or unsettled; the attempts' time-outs bound that wait. Lanes that wait for a slot do not
   * delay it.
   */
  readonly onHandover: (partitions: readonly number[]) => ReadonlyMap<number, Promise<void>>;
  /** Lanes with something to do, by partition. */
  readonly busyLanesByPartition: () => ReadonlyMap<number, number>;
  /** Notifies other nodes that they should check the leases now. */
  readonly notifyPeers: () => void;
  /** Another program has changed the schema: this process must stop. */
  readonly onIncompatibleSchema: (error: IncompatibleSchemaError) => void;
}

/** The results of one round of queries. */
interface RenewalRound {
  readonly fairPartitionCount: number;
  readonly kept: readonly number[];
  readonly claimed: readonly HeldPartition[];
  readonly released: readonly HeldPartition[];
  readonly nextPeerExpiryMs: number | null;
}

/**
 * The partitions of this node. Before each attempt a lane calls `usableEpochOf`, which checks the monotonic and the
 * wall clock. The monotonic clock runs on while a process is stopped, the wall clock while a machine sleeps.
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
  /** Held partitions that this node is releasing: nothing new starts in them. */
  readonly #handingOver = new Set<number>();
  /** Partitions of `#handingOver` with nothing in flight or unsettled. */
  readonly #drained = new Set<number>();
  readonly #migrations = listMigrations();
  readonly #timeline: () => number;
  #usableUntil = { monotonic: 0, wall: 0 };
  /** The time on the monotonic clock until which this node holds no partition. */
  #oldTimelineLeasesExpireAtMs = 0;
  #nodeCount = 1;
  #timer: NodeJS.Timeout | null = null;
  #round: Promise<void> | null = null;
  /** True: a round is about to begin, or follows immediately after the current one. */
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

  /** Claims free partitions and starts renewing; resolves after the first round. */
  async start(): Promise<void> {
    if (!this.#stopped) return;
    this.#stopped = false;
    this.#round = this.#renew();
    await this.#round;
    this.#events.notifyPeers();
  }

  /** Begins to release all partitions, each one when it is drained; `stop` completes this. */
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
    // A second trigger does not delay the round: rounds renew the leases.
    if (this.#promptRoundRequested) return;
    this.#promptRoundRequested = true;
    if (this.#round === null) this.#schedule(DEBOUNCE_MS);
  }

  /**
   * For a new timeline: gives up all partitions at once. Claims again when every lease of the old timeline has expired
   * by any node's clock. The new primary may lack the last claims, and its clock may be ahead.
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
    let next = RENEW_INTERVAL_MS;
    try {
      const round = await this.#pool.run((sql) => this.#runRoundQueries(sql));
      const validMs = LEASE_MS - LEASE_SAFETY_MARGIN_MS;
      this.#applyRoundReportingLost(round, {
        monotonic: requestedAt.monotonic + validMs,
        wall: requestedAt.wall + validMs,
      });
      const { claimed, kept, fairPartitionCount } = round;
      if (claimed.length > 0) this.#events.onGainedOrRegained(claimed.map((c) => c.partition));
      // After an expired lease, the lanes must read their rows again: other nodes may have changed hooks meanwhile.
      const ours = this.partitionsNotHandingOver;
      if (!wasValid && kept.length > 0) this.#events.onGainedOrRegained(ours);
      if (ours.length > fairPartitionCount)
        this.#handOver(leastBusy(ours, ours.length - fairPartitionCount, this.#events.busyLanesByPartition()));
      if (round.released.length > 0) this.#events.notifyPeers();
      if (this.#isAwaitingOldTimelineExpiry)
        next = Math.min(next, this.#oldTimelineLeasesExpireAtMs - performance.now() + DEBOUNCE_MS);
      // A live node renews its leases long before they expire, so only the leases of a dead node can expire before the
      // next round.
      if (round.nextPeerExpiryMs !== null) next = Math.min(next, Math.max(round.nextPeerExpiryMs, 0) + DEBOUNCE_MS);
    } catch (error) {
      if (error instanceof IncompatibleSchemaError) this.#events.onIncompatibleSchema(error);
      this.#log.warn('the leases of the lanes cannot be renewed', { error });
      next = RENEW_INTERVAL_MS / 3;
    }
    this.#round = null;
    this.#schedule(this.#promptRoundRequested ? DEBOUNCE_MS : next);
  }

  async #runRoundQueries(sql: Sql): Promise<RenewalRound> {
    await checkSchemaReturningVersion(sql, this.#migrations);
    const fairPartitionCount = await this.#joinOrLeaveAndComputeShare(sql);
    if (this.#isAwaitingOldTimelineExpiry)
      return { fairPartitionCount, kept: [], claimed: [], released: [], nextPeerExpiryMs: null };
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
    const claim = {
      holder: this.#holder,
      alreadyHeldPartitions,
      maxClaimedPartitions: Math.max(0, maxClaimedPartitions),
      leaseMs: LEASE_MS,
      timeline: this.#timeline(),
    };
    const claimed =
      this.#leaving || alreadyHeldPartitions.length === PARTITIONS ? [] : await claimPartitions(sql, claim);
    return { fairPartitionCount, kept, claimed, released, nextPeerExpiryMs: await nextPeerExpiryMs(sql, this.#holder) };
  }

  async #joinOrLeaveAndComputeShare(sql: Sql): Promise<number> {
    if (this.#leaving) {
      await deleteNode(sql, this.#holder);
      return 0;
    }
    const nodes = await heartbeatAndListLiveNodes(sql, this.#holder, LEASE_MS);
    // A node that is alone from the start logs nothing.
    if (nodes.length !== this.#nodeCount) this.#log.info('nodes share the lanes', { nodes: nodes.length });
    this.#nodeCount = nodes.length;
    return fairShare(this.#holder, nodes);
  }

  #withEpochs(partitions: readonly number[]): HeldPartition[] {
    return partitions.map((partition) => ({ partition, epoch: this.#epochByPartition.get(partition)! }));
  }

  #applyRoundReportingLost(
    { kept, claimed, released }: RenewalRound,
    usableUntil: { monotonic: number; wall: number },
  ): void {
    for (const { partition } of released) this.#forget(partition);
    const stays = new Set(kept);
    const lost = [...this.#epochByPartition.keys()].filter((partition) => !stays.has(partition));
    for (const partition of lost) this.#forget(partition);
    for (const { partition, epoch } of claimed) this.#epochByPartition.set(partition, epoch);
    // A round that was running when the suspension began may have claimed in the new timeline but renewed in the old
    // one.
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
    // If this node lost the partition and gained it again meanwhile, it holds another lease, which is not drained.
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
