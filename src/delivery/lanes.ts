import type { DeliveryConfig } from '../config/config.ts';
import type { Bus } from '../bus/bus.ts';
import type { Log } from '../log.ts';
import type { ConversationId, Seq } from '../model/ids.ts';
import { secretKey } from '../model/hook-secret.ts';
import type { DeliveryClient } from '../outbound/delivery-client.ts';
import type { Database } from '../storage/database.ts';
import { lanesOfConversations, pendingConversations, type LaneRow } from '../storage/lanes.ts';
import type { Sealer } from '../storage/sealed.ts';
import { removeByTarget, StaleLaneError, type AttemptRecord, type Settlement } from '../storage/settlements.ts';
import { Lane, type LaneContext, type LaneKeys } from './lane.ts';
import { Leases } from './leases.ts';
import { MessageReader } from './reader.ts';
import { Settler } from './settler.ts';
import { Slots } from './slots.ts';

export interface LanesOptions {
  readonly database: Database;
  readonly bus: Bus;
  readonly client: DeliveryClient;
  readonly sealer: Sealer;
  readonly config: DeliveryConfig;
  /** Who we are to the lease table: the data directory's identity. */
  readonly node: string;
  readonly log: Log;
}

const SWEEP_MS = 5_000;
const PAGE = 200;
const RETRY_MS = 500;
/** Sweeps that find a conversation's lanes at rest before it is forgotten until the next word: about a minute. */
const IDLE_ROUNDS = 12;

interface Loaded {
  readonly lanes: Map<number, Lane>;
  restedRounds: number;
}

/**
 * All lanes of the partitions that this process holds. A conversation's lanes are in memory while something happens in
 * it; the database knows the rest. Words of the bus wake lanes; sweeps find what no word told of.
 */
export class Lanes {
  readonly #options: LanesOptions;
  readonly #log: Log;
  readonly #slots: Slots;
  readonly #settler: Settler;
  readonly #leases: Leases;
  readonly #context: LaneContext;
  readonly #loaded = new Map<ConversationId, Loaded>();
  /** Conversations whose rows have to be read (again). */
  readonly #dirty = new Set<ConversationId>();
  #loading: Promise<void> | null = null;
  #sweeping: Promise<void> | null = null;
  #fullSweep = new Set<number>();
  #timer: NodeJS.Timeout | null = null;
  #unsubscribe: (() => void) | null = null;
  #stopped = false;

  constructor(options: LanesOptions) {
    const { database, config, client, log } = options;
    this.#options = options;
    this.#log = log;
    this.#slots = new Slots(config.inFlight, config.perHost);
    this.#settler = new Settler(database.settle, log);
    this.#leases = new Leases({
      pool: database.lease,
      holder: options.node,
      events: { onGained: (p) => this.#gained(p), onLost: (p) => this.#lost(p) },
      log,
    });
    this.#context = {
      reader: new MessageReader(database.general),
      slots: this.#slots,
      client,
      settler: this.#settler,
      leases: this.#leases,
      schedule: config,
      log,
      onStale: (id) => this.#read([id]),
      onGone: (lane, settlement, attempt) => this.#gone(lane, settlement, attempt),
    };
  }

  async start(): Promise<void> {
    this.#unsubscribe = this.#options.bus.subscribe({
      advanced: (conversations) => this.#advanced(conversations),
      hooksChanged: (ids) => this.#changed(ids),
      gap: () => this.#gap(),
    });
    await this.#leases.start();
    this.#armSweep();
  }

  /** Starts no new attempt, waits for those in flight until `deadlineMs` from now, and gives the partitions back. */
  async stop(deadlineMs: number): Promise<void> {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#unsubscribe?.();
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#slots.stop();
    const lanes = [...this.#loaded.values()].flatMap((loaded) => [...loaded.lanes.values()]);
    const retired = Promise.all(lanes.map((lane) => lane.retire()));
    const timer = setTimeout(() => {
      // Whatever is still open may or may not have arrived: it is sent again after the next start.
      this.#settler.stop();
      void this.#options.client.stop();
    }, deadlineMs);
    await retired;
    clearTimeout(timer);
    this.#settler.stop();
    await Promise.all([this.#loading, this.#sweeping]);
    await this.#leases.stop();
  }

  #advanced(conversations: ReadonlyMap<ConversationId, Seq>): void {
    const unknown: ConversationId[] = [];
    for (const [id, seq] of conversations) {
      const loaded = this.#loaded.get(id);
      if (loaded === undefined) unknown.push(id);
      else this.#wake(loaded, seq);
    }
    this.#read(unknown);
  }

  #wake(loaded: Loaded, seq: Seq): void {
    loaded.restedRounds = 0;
    for (const lane of loaded.lanes.values()) lane.wake(seq);
  }

  /** Held at once, in the same turn: when the change is answered, no attempt of the old kind starts any more. */
  #changed(ids: readonly ConversationId[]): void {
    for (const id of ids) for (const lane of this.#loaded.get(id)?.lanes.values() ?? []) lane.hold();
    this.#read(ids);
  }

  /** Words were lost: rows may have changed as well. */
  #gap(): void {
    this.#read([...this.#loaded.keys()]);
    this.#sweepSoon();
  }

  #gained(partitions: readonly number[]): void {
    for (const partition of partitions) this.#fullSweep.add(partition);
    this.#gap();
  }

  #lost(partitions: readonly number[]): void {
    this.#log.warn('partitions of the lanes belong to another process now', { count: partitions.length });
    for (const { lanes } of this.#loaded.values()) {
      for (const lane of lanes.values()) {
        if (!partitions.includes(lane.partition)) continue;
        lanes.delete(lane.id);
        void lane.retire();
      }
    }
  }

  #read(ids: readonly ConversationId[]): void {
    for (const id of ids) this.#dirty.add(id);
    if (this.#dirty.size === 0 || this.#loading !== null || this.#stopped) return;
    this.#loading = this.#load().finally(() => {
      this.#loading = null;
      this.#read([]);
    });
  }

  async #load(): Promise<void> {
    while (this.#dirty.size > 0 && !this.#stopped) {
      const ids = [...this.#dirty].slice(0, PAGE);
      for (const id of ids) this.#dirty.delete(id);
      try {
        const rows = await this.#options.database.general.run((sql) => lanesOfConversations(sql, ids));
        const byConversation = Map.groupBy(rows, (row) => row.conversationId);
        for (const id of ids) this.#reconcile(id, byConversation.get(id) ?? []);
      } catch (error) {
        for (const id of ids) this.#dirty.add(id);
        this.#log.debug('lanes cannot be read, repeating', { error });
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS).unref());
      }
    }
  }

  /** Makes the lanes in memory agree with the rows that were read. */
  #reconcile(id: ConversationId, rows: readonly LaneRow[]): void {
    const loaded = this.#loaded.get(id) ?? { lanes: new Map<number, Lane>(), restedRounds: 0 };
    this.#loaded.set(id, loaded);
    loaded.restedRounds = 0;
    const owned = new Set(this.#leases.partitions);
    const present = new Set<number>();
    for (const row of rows) {
      const lane = loaded.lanes.get(row.id);
      present.add(row.id);
      if (lane !== undefined && lane.generation === row.generation && !lane.stale) {
        lane.wake(row.lastSeq);
        if (!this.#dirty.has(id)) lane.resume();
      } else if (lane !== undefined) this.#replace(loaded, lane);
      else if (!this.#stopped) this.#create(loaded, row, owned);
    }
    for (const lane of loaded.lanes.values()) if (!present.has(lane.id)) this.#drop(loaded, lane);
  }

  #create(loaded: Loaded, row: LaneRow, owned: ReadonlySet<number>): void {
    const keys = this.#keysOf(row);
    if (keys === null) return;
    const lane = new Lane(row, keys, this.#context);
    if (!owned.has(lane.partition)) return;
    loaded.lanes.set(row.id, lane);
    lane.wake(row.lastSeq);
  }

  /** The changed hook's lane begins when the old one's attempt in flight is over, with the row as it is then. */
  #replace(loaded: Loaded, old: Lane): void {
    old.hold();
    void old.retire().then(() => {
      if (loaded.lanes.get(old.id) === old) loaded.lanes.delete(old.id);
      this.#read([old.conversationId]);
    });
  }

  #drop(loaded: Loaded, lane: Lane): void {
    loaded.lanes.delete(lane.id);
    void lane.retire();
  }

  #keysOf(row: LaneRow): LaneKeys | null {
    const { sealer } = this.#options;
    try {
      const current = secretKey(sealer.open('hook-secret', row.secretSealed));
      if (row.oldSecretSealed === null || row.oldSecretUntil === null) return { current, old: null };
      const key = secretKey(sealer.open('hook-secret', row.oldSecretSealed));
      return { current, old: { key, untilMs: row.oldSecretUntil.getTime() } };
    } catch (error) {
      this.#log.error('a hook rests: its secret cannot be opened', { hook: row.id, error });
      return null;
    }
  }

  async #gone(lane: Lane, settlement: Settlement, attempt: AttemptRecord): Promise<boolean> {
    const { conversationId, host } = lane;
    this.#log.info('a target answered 410: its hook is removed', { hook: lane.id, host });
    try {
      const removal = { settlement, attempt, conversationId, host };
      const removed = await this.#options.database.settle.transaction((tx) => removeByTarget(tx, removal));
      if (removed) this.#options.bus.publish('hooksChanged', [conversationId]);
      return removed;
    } catch (error) {
      if (!(error instanceof StaleLaneError)) this.#log.warn('a hook could not be removed, repeating', { error });
      return false;
    }
  }

  #armSweep(): void {
    if (this.#stopped) return;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#sweepSoon(), SWEEP_MS);
  }

  #sweepSoon(): void {
    if (this.#sweeping !== null || this.#stopped) return;
    this.#forgetIdle();
    this.#sweeping = this.#sweep().finally(() => {
      this.#sweeping = null;
      this.#armSweep();
    });
  }

  /** Everything that is pending in newly gained partitions; in the others, what advanced within the last minute. */
  async #sweep(): Promise<void> {
    const full = [...this.#fullSweep];
    this.#fullSweep = new Set();
    try {
      await this.#sweepPages(this.#leases.partitions, true);
      if (full.length > 0) await this.#sweepPages(full, false);
    } catch (error) {
      for (const partition of full) this.#fullSweep.add(partition);
      this.#log.debug('the sweep over the lanes failed, repeating', { error });
    }
  }

  async #sweepPages(partitions: readonly number[], recent: boolean): Promise<void> {
    if (partitions.length === 0) return;
    for (let after = 0; !this.#stopped;) {
      const page = { partitions, after, limit: PAGE, recent };
      const ids = await this.#options.database.general.run((sql) => pendingConversations(sql, page));
      this.#read(ids);
      await this.#loading;
      if (ids.length < PAGE) return;
      after = ids.at(-1)!;
    }
  }

  #forgetIdle(): void {
    for (const [id, loaded] of this.#loaded) {
      const idle = [...loaded.lanes.values()].every((lane) => lane.idle);
      loaded.restedRounds = idle ? loaded.restedRounds + 1 : 0;
      if (loaded.restedRounds > IDLE_ROUNDS) this.#loaded.delete(id);
    }
  }
}
