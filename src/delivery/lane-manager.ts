import type { KeyObject } from 'node:crypto';
import type { DeliveryConfig } from '../config/config.ts';
import type { Bus, ReliableEvent } from '../bus/bus.ts';
import type { Log } from '../log.ts';
import type { ConversationId, Seq } from '../model/ids.ts';
import type { DeliveryClient } from '../outbound/delivery-client.ts';
import type { PostReply } from '../receivers/core/reply.ts';
import type { Database } from '../storage/database.ts';
import type { HookReference } from '../storage/hooks/hook-control.ts';
import { lanesOfConversations, PARTITIONS, type LaneRow } from '../storage/hooks/lanes.ts';
import type { Sealer } from '../storage/db/sealed.ts';
import { DeliveryCounts } from './delivery-counts.ts';
import { FirstFailureWarningThrottle } from './failure-warning-throttle.ts';
import { openSigningKeys } from './headers.ts';
import { HookStateWriter } from './hook-state-writer.ts';
import { Lane, REFUSED_LANE_RELOAD_MS, type LaneContext } from './lane.ts';
import { SlowHooks } from './lane-limiter.ts';
import { Leases } from './leases.ts';
import type { CreateFileLink } from './payload.ts';
import { MessageReader } from './message-reader.ts';
import { EventReader } from './events/event-reader.ts';
import { Settler } from './settler.ts';
import { HostLimiter } from './host-limiter.ts';
import { Sweep } from './sweep.ts';

interface LaneManagerOptions {
  readonly database: Database;
  readonly bus: Bus;
  readonly client: DeliveryClient;
  readonly sealer: Sealer;
  /** The server's private keys that sign deliveries. */
  readonly serverKeys: readonly KeyObject[];
  readonly config: DeliveryConfig;
  readonly createFileLink: CreateFileLink;
  readonly postReply: PostReply;
  /** This node's id in the lease table: the data directory's identity. */
  readonly nodeId: string;
  /** Called when a newer program has changed the schema: this process must stop. */
  readonly onIncompatibleSchema: (error: Error) => void;
  readonly log: Log;
}

/**
 * The most conversations whose lanes one query reads. With 200, creating their lanes blocked the event loop for 10 ms.
 * At a start with 50,000 conversations pending, the rate of posts fell to a fifth with 200, to two thirds with 50.
 */
const CONVERSATIONS_PER_QUERY = 50;
const LOAD_RETRY_MS = 500;
/** When a notification of one of these kinds may be lost, the manager reads the rows of all its lanes again. */
const RESYNC_KINDS: readonly ReliableEvent[] = ['messagesCommitted', 'hookEventsCommitted', 'hooksChanged'];
/**
 * A lane may find no message although its head is greater than its cursor. Its hook's row is then read again after this
 * pause: without it, the lane would search again at once.
 */
const MISSING_MESSAGES_RELOAD_MS = 1_000;
/**
 * A conversation is removed from memory when more successive sweeps than this found all its lanes idle: after about a
 * minute. Its next notification loads it again.
 */
const MAX_IDLE_SWEEPS = 12;

/** The current load of this process's lanes. */
interface DeliveryLoad {
  readonly inFlight: number;
  /** Lanes that wait for a slot, the permission for one request in flight. */
  readonly waitingForSlot: number;
  /** Settlements that are not committed yet: at most one for each lane, of up to eight attempts. */
  readonly pendingSettlements: number;
  readonly partitionCountNotHandingOver: number;
}

interface LoadedConversation {
  /** A retired lane stays here until its last attempt has ended, so that a hook never has two lanes. */
  readonly groupLanesByHook: Map<number, Lane>;
  /** The newest seq that a notification announced; the row of a hook may lag behind it. */
  head: Seq;
  idleSweeps: number;
}

/**
 * All lanes of the partitions that this process holds. A conversation's lanes are in memory only while it is active;
 * the database holds everything else. Notifications of the bus wake lanes; sweeps find work whose notification was
 * lost.
 */
export class LaneManager {
  readonly counts = new DeliveryCounts();
  readonly #options: LaneManagerOptions;
  readonly #log: Log;
  readonly #limiter: HostLimiter;
  readonly #settler: Settler;
  readonly #leases: Leases;
  readonly #context: LaneContext;
  readonly #sweep: Sweep;
  readonly #hookStates: HookStateWriter;
  readonly #loaded = new Map<ConversationId, LoadedConversation>();
  /** Conversations whose hook rows must be read, for the first time or again. */
  readonly #dirty = new Set<ConversationId>();
  /** Conversations whose hook rows are being read. */
  #conversationsBeingRead: readonly ConversationId[] = [];
  #loading: Promise<void> | null = null;
  #unsubscribe: (() => void) | null = null;
  #stopped = false;

  constructor(options: LaneManagerOptions) {
    const { database, config, client, log } = options;
    this.#options = options;
    this.#log = log;
    this.#limiter = new HostLimiter(config.maxInFlight, config.maxInFlightPerHost);
    this.#settler = new Settler(database.settle, log);
    this.#leases = new Leases({
      pool: database.lease,
      holder: options.nodeId,
      timeline: () => database.timeline,
      events: {
        onGainedOrRegained: (p) => this.#suspendAndSweepGained(p),
        onLost: (p) => this.#retireLanesOfLostPartitions(p),
        onHandover: (p) => this.#handOver(p),
        busyLanesByPartition: () => this.#busyLanesByPartition(),
        notifyPeers: () => options.bus.publish('leasesNeedRebalancing', undefined),
        onIncompatibleSchema: options.onIncompatibleSchema,
      },
      log,
    });
    this.#hookStates = new HookStateWriter(database.general, options.bus, log);
    const sweepEvents = {
      heldPartitions: () => this.#leases.partitionsNotHandingOver,
      onPending: (ids: readonly ConversationId[]) => this.#markDirtyAndAwaitLoad(ids),
      onSweepStart: () => this.#forgetIdle(),
    };
    this.#sweep = new Sweep(database.general, sweepEvents, log);
    const readerOptions = { createFileLink: options.createFileLink, witness: database.witness, log };
    this.#context = {
      reader: new MessageReader(database.general, readerOptions),
      eventReader: new EventReader(database.general, readerOptions),
      retryQueuePool: database.general,
      limiter: this.#limiter,
      slowHooks: new SlowHooks(),
      client,
      createFileLink: options.createFileLink,
      postReply: options.postReply,
      settler: this.#settler,
      leases: this.#leases,
      retryPolicy: config,
      parkAfterMs: config.parkAfterMs,
      counts: this.counts,
      failureWarningThrottle: new FirstFailureWarningThrottle(log),
      log,
      onStale: (id) => this.#markDirtyAndLoad([id]),
      onMissingMessages: (id) =>
        void setTimeout(() => this.#markDirtyAndLoad([id]), MISSING_MESSAGES_RELOAD_MS).unref(),
      onGone: (lane, settlement, attempt) => this.#hookStates.removeGoneNotifyingGroup(lane, settlement, attempt),
      onParkDue: (lane, settlement) => this.#hookStates.parkNotifyingGroup(lane, settlement),
    };
  }

  get load(): DeliveryLoad {
    return {
      inFlight: this.#limiter.inFlightCount,
      waitingForSlot: this.#limiter.waiterCount,
      pendingSettlements: this.#settler.pendingCount,
      partitionCountNotHandingOver: this.#leases.partitionsNotHandingOver.length,
    };
  }

  /** Hooks of this process whose receivers seem to answer posts of the group's webhook with further posts. */
  get loopingHooks(): readonly HookReference[] {
    const nowMs = Date.now();
    return [...this.#loaded.values()].flatMap(({ groupLanesByHook }) =>
      [...groupLanesByHook.values()]
        .filter((lane) => lane.isLoop(nowMs))
        .map(({ conversationId, id: hookId }) => ({ conversationId, hookId })),
    );
  }

  async start(): Promise<void> {
    this.#unsubscribe = this.#options.bus.subscribe({
      messagesCommitted: (conversations) => this.#wakeOrLoadLanes(conversations),
      hookEventsCommitted: (ids) => this.#wakeOrLoadLanesForEvents(ids),
      hooksChanged: (ids) => this.#suspendAndReloadLanes(ids),
      leasesNeedRebalancing: () => this.#leases.trigger(),
      resync: (kinds) => {
        if (RESYNC_KINDS.some((kind) => kinds.has(kind))) this.#resync();
        if (kinds.has('leasesNeedRebalancing')) this.#leases.trigger();
      },
    });
    await this.#leases.start();
    this.#sweep.start();
  }

  /** For a new timeline of the database: suspends every lane until all leases of the old timeline have expired. */
  suspendUntilOldLeasesExpire(): void {
    this.#leases.suspendUntilLeasesExpire();
  }

  /** Starts no new attempt, waits up to `maxWaitMs` for those in flight, and releases the partitions. */
  async stop(maxWaitMs: number): Promise<void> {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#unsubscribe?.();
    const swept = this.#sweep.stop();
    this.#limiter.stop();
    this.#leases.leave();
    const lanes = [...this.#loaded.values()].flatMap((loaded) => [...loaded.groupLanesByHook.values()]);
    const retired = Promise.all(lanes.map((lane) => lane.retire()));
    const timer = setTimeout(() => {
      // An attempt that is still open may or may not have arrived: the lane sends it again after the next start.
      this.#settler.stop();
      void this.#options.client.stop();
    }, maxWaitMs);
    await retired;
    clearTimeout(timer);
    this.#settler.stop();
    await Promise.all([this.#loading, swept]);
    await this.#leases.stop();
  }

  #wakeOrLoadLanes(conversations: ReadonlyMap<ConversationId, Seq>): void {
    const unloadedIds: ConversationId[] = [];
    for (const [id, seq] of conversations) {
      const loaded = this.#loaded.get(id);
      if (loaded === undefined) unloadedIds.push(id);
      else this.#wake(loaded, seq);
    }
    this.#markDirtyAndLoad(unloadedIds);
  }

  #wakeOrLoadLanesForEvents(ids: readonly ConversationId[]): void {
    for (const id of ids) {
      const loaded = this.#loaded.get(id);
      if (loaded !== undefined) loaded.idleSweeps = 0;
      for (const lane of loaded?.groupLanesByHook.values() ?? []) lane.wakeForEvents();
    }
    // A row that is being read may be older than the event: a lane made of it would not know of the event.
    this.#markDirtyAndLoad(ids.filter((id) => !this.#loaded.has(id) || this.#conversationsBeingRead.includes(id)));
  }

  #wake(loaded: LoadedConversation, seq: Seq): void {
    loaded.idleSweeps = 0;
    if (seq > loaded.head) loaded.head = seq;
    for (const lane of loaded.groupLanesByHook.values()) lane.wake(seq);
  }

  /**
   * Suspends the lanes in the turn of the event loop in which the notification arrives. So no attempt starts with old
   * settings after the request that changed the hook was answered.
   */
  #suspendAndReloadLanes(ids: readonly ConversationId[]): void {
    for (const id of ids) for (const lane of this.#loaded.get(id)?.groupLanesByHook.values() ?? []) lane.suspend();
    this.#markDirtyAndLoad(ids);
  }

  /** Notifications were lost: reads all rows again, since any may have changed, even one that is being read. */
  #resync(): void {
    this.#markDirtyAndLoad([...this.#loaded.keys(), ...this.#conversationsBeingRead]);
    this.#sweep.sweepNow();
  }

  #suspendAndSweepGained(partitions: readonly number[]): void {
    this.#sweep.requestFullSweep(partitions);
    // While the lease had lapsed, nodes may have changed hooks, and the notifications of these changes may not have
    // arrived yet. So the lanes wait until their rows are read.
    for (const { lane } of this.#lanesIn(partitions)) lane.suspend();
    this.#resync();
  }

  #retireLanesOfLostPartitions(partitions: readonly number[]): void {
    this.#log.warn('partitions of the lanes belong to another process now', { count: partitions.length });
    for (const { loaded, lane } of this.#lanesIn(partitions)) this.#retireThenReload(loaded, lane);
  }

  #handOver(partitions: readonly number[]): Map<number, Promise<void>> {
    const lanesByPartition = Map.groupBy(this.#lanesIn(partitions), ({ lane }) => lane.partition);
    for (const { loaded, lane } of [...lanesByPartition.values()].flat()) this.#retireThenReload(loaded, lane);
    const drainPartition = async (partition: number): Promise<void> => {
      await Promise.all((lanesByPartition.get(partition) ?? []).map(({ lane }) => lane.retire()));
    };
    return new Map(partitions.map((partition) => [partition, drainPartition(partition)]));
  }

  /** The number of lanes with something to do, by partition. */
  #busyLanesByPartition(): Map<number, number> {
    const counts = new Map<number, number>();
    for (const { lane } of this.#lanesIn(this.#leases.partitionsNotHandingOver)) {
      if (!lane.idle) counts.set(lane.partition, (counts.get(lane.partition) ?? 0) + 1);
    }
    return counts;
  }

  #lanesIn(partitions: readonly number[]): { loaded: LoadedConversation; lane: Lane }[] {
    const wanted = new Set(partitions);
    return [...this.#loaded.values()].flatMap((loaded) =>
      [...loaded.groupLanesByHook.values()]
        .filter((lane) => wanted.has(lane.partition))
        .map((lane) => ({ loaded, lane })),
    );
  }

  #markDirtyAndLoad(ids: readonly ConversationId[]): void {
    for (const id of ids) this.#dirty.add(id);
    if (this.#dirty.size === 0 || this.#loading !== null || this.#stopped) return;
    this.#loading = this.#loadDirty().finally(() => {
      this.#loading = null;
      this.#markDirtyAndLoad([]);
    });
  }

  async #markDirtyAndAwaitLoad(ids: readonly ConversationId[]): Promise<void> {
    this.#markDirtyAndLoad(ids);
    await this.#loading;
  }

  async #loadDirty(): Promise<void> {
    while (this.#dirty.size > 0 && !this.#stopped) {
      const ids = [...this.#dirty].slice(0, CONVERSATIONS_PER_QUERY);
      for (const id of ids) this.#dirty.delete(id);
      this.#conversationsBeingRead = ids;
      try {
        const rows = await this.#options.database.general.run((sql) => lanesOfConversations(sql, ids));
        const byConversation = Map.groupBy(rows, (row) => row.conversationId);
        await this.#skipRemovedMessages(rows);
        for (const id of ids) this.#reconcile(id, byConversation.get(id) ?? []);
      } catch (error) {
        for (const id of ids) this.#dirty.add(id);
        this.#log.debug('lanes cannot be read, repeating', { error });
        await new Promise((resolve) => setTimeout(resolve, LOAD_RETRY_MS).unref());
      }
    }
    this.#conversationsBeingRead = [];
  }

  /**
   * Moves the cursors of hooks past messages that a retention rule removed. Marks their conversations dirty, so that no
   * lane is made of the outdated rows.
   */
  async #skipRemovedMessages(rows: readonly LaneRow[]): Promise<void> {
    const owned = new Set(this.#leases.partitionsNotHandingOver);
    const lagging = rows.filter((row) => row.hasRemovedBacklog && owned.has(row.id % PARTITIONS));
    if (lagging.length === 0) return;
    await this.#hookStates.skipRemovedMessages(lagging);
    for (const { conversationId } of lagging) this.#dirty.add(conversationId);
  }

  /** Creates, retires or wakes a conversation's lanes, so that they agree with the hook rows that were read. */
  #reconcile(id: ConversationId, rows: readonly LaneRow[]): void {
    const loaded = this.#loaded.get(id) ?? { groupLanesByHook: new Map<number, Lane>(), head: 0 as Seq, idleSweeps: 0 };
    this.#loaded.set(id, loaded);
    loaded.idleSweeps = 0;
    const owned = new Set(this.#leases.partitionsNotHandingOver);
    const presentHookIds = new Set<number>();
    // True if the rows are outdated, or the manager stops: then the rows may retire lanes, but start none.
    const outdated = this.#dirty.has(id) || this.#stopped;
    for (const row of rows) {
      presentHookIds.add(row.id);
      const lane = loaded.groupLanesByHook.get(row.id);
      if (lane === undefined) {
        if (!outdated && owned.has(row.id % PARTITIONS)) this.#createLane(loaded, row);
      } else if (lane.generation !== row.generation || lane.stale) {
        // A stale lane with an unchanged row had a settlement refused. Without a pause, the hook's next lane would send
        // and be refused again until the leases are renewed.
        this.#retireThenReload(loaded, lane, lane.generation === row.generation ? REFUSED_LANE_RELOAD_MS : 0);
      } else {
        lane.wake(row.lastSeq > loaded.head ? row.lastSeq : loaded.head);
        if (row.hasPendingEvents) lane.wakeForEvents();
        if (!outdated) lane.resume();
      }
    }
    for (const lane of loaded.groupLanesByHook.values())
      if (!presentHookIds.has(lane.id)) this.#retireThenReload(loaded, lane);
  }

  #createLane(loaded: LoadedConversation, row: LaneRow): void {
    const { sealer, serverKeys } = this.#options;
    try {
      const lane = new Lane(row, openSigningKeys(sealer, serverKeys, row), this.#context);
      loaded.groupLanesByHook.set(row.id, lane);
      lane.wake(row.lastSeq > loaded.head ? row.lastSeq : loaded.head);
    } catch (error) {
      this.#log.error('a hook rests: its row cannot be used', { hook: row.id, error });
    }
  }

  /** Retires a lane. After its attempts in flight and the delay, reads the hook's row again for a new lane. */
  #retireThenReload(loaded: LoadedConversation, lane: Lane, delayMs = 0): void {
    if (lane.retired) return;
    void lane.retire().then(async () => {
      if (delayMs > 0) await new Promise((resolve) => setTimeout(resolve, delayMs).unref());
      loaded.groupLanesByHook.delete(lane.id);
      this.#markDirtyAndLoad([lane.conversationId]);
    });
  }

  #forgetIdle(): void {
    for (const [id, loaded] of this.#loaded) {
      const idle = [...loaded.groupLanesByHook.values()].every((lane) => lane.idle);
      loaded.idleSweeps = idle ? loaded.idleSweeps + 1 : 0;
      if (loaded.idleSweeps > MAX_IDLE_SWEEPS) this.#loaded.delete(id);
    }
  }
}
