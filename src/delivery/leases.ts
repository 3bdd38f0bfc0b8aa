import type { Log } from '../log.ts';
import { claimPartitions, releasePartitions, renewPartitions, type HeldPartition } from '../storage/leases.ts';
import { PARTITIONS } from '../storage/lanes.ts';
import { checkSchema, newestVersion, SchemaTooNewError } from '../storage/migrate.ts';
import type { Pool } from '../storage/pool.ts';

const LEASE_MS = 10_000;
const RENEW_MS = 3_000;
/** A lease is not used for its last moments, so that a write that left in time arrives in time. */
const MARGIN_MS = 2_000;

export interface LeaseEvents {
  /** These partitions are ours from now on: look for what is pending in them. */
  readonly onGained: (partitions: readonly number[]) => void;
  /** These belong to somebody else now. */
  readonly onLost: (partitions: readonly number[]) => void;
  /** A newer program has changed the schema: this process must not go on. */
  readonly onOutdated: (error: SchemaTooNewError) => void;
}

/**
 * Which partitions of the lanes are ours. Before each attempt a lane asks `epochOf`, which answers by the monotonic and
 * the wall clock: the one does not stand still while a process is stopped, the other not while a machine sleeps.
 */
export class Leases {
  readonly #pool: Pool;
  readonly #holder: string;
  readonly #events: LeaseEvents;
  readonly #log: Log;
  readonly #held = new Map<number, number>();
  readonly #newestSchema = newestVersion();
  #validUntil = { monotonic: 0, wall: 0 };
  #timer: NodeJS.Timeout | null = null;
  #round: Promise<void> | null = null;
  #stopped = true;

  /** `holder` is the data directory's identity: its lock lets one process at a time use it. */
  constructor(options: { pool: Pool; holder: string; events: LeaseEvents; log: Log }) {
    this.#pool = options.pool;
    this.#holder = options.holder;
    this.#events = options.events;
    this.#log = options.log;
  }

  /** Claims what is free and goes on renewing; resolves after the first round. */
  async start(): Promise<void> {
    if (!this.#stopped) return;
    this.#stopped = false;
    this.#round = this.#renew();
    await this.#round;
  }

  /** Stops renewing and hands everything over. Lanes must have stopped before. */
  async stop(): Promise<void> {
    if (this.#stopped) return;
    this.#stopped = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    await this.#round;
    this.#held.clear();
    try {
      await this.#pool.run((sql) => releasePartitions(sql, this.#holder));
    } catch (error) {
      this.#log.info('the leases could not be given back: they end by themselves', { error });
    }
  }

  get partitions(): number[] {
    return [...this.#held.keys()];
  }

  /** The epoch of a partition that may be used right now, else null. */
  epochOf(partition: number): number | null {
    const { monotonic, wall } = this.#validUntil;
    if (performance.now() >= monotonic || Date.now() >= wall) return null;
    return this.#held.get(partition) ?? null;
  }

  async #renew(): Promise<void> {
    const asked = { monotonic: performance.now(), wall: Date.now() };
    const wasValid = asked.monotonic < this.#validUntil.monotonic && asked.wall < this.#validUntil.wall;
    let next = RENEW_MS;
    try {
      const held: HeldPartition[] = [...this.#held].map(([partition, epoch]) => ({ partition, epoch }));
      const { kept, claimed } = await this.#pool.run(async (sql) => {
        await checkSchema(sql, this.#newestSchema);
        return {
          kept: held.length === 0 ? [] : await renewPartitions(sql, this.#holder, held, LEASE_MS),
          claimed:
            held.length === PARTITIONS ? [] : await claimPartitions(sql, this.#holder, this.partitions, LEASE_MS),
        };
      });
      this.#take(held, kept, claimed);
      const validMs = LEASE_MS - MARGIN_MS;
      this.#validUntil = { monotonic: asked.monotonic + validMs, wall: asked.wall + validMs };
      if (claimed.length > 0) this.#events.onGained(claimed.map((c) => c.partition));
      // Lanes that found the lease out of date have gone to rest.
      if (!wasValid && kept.length > 0) this.#events.onGained(kept);
    } catch (error) {
      if (error instanceof SchemaTooNewError) this.#events.onOutdated(error);
      this.#log.warn('the leases of the lanes cannot be renewed', { error });
      next = RENEW_MS / 3;
    }
    if (!this.#stopped) {
      this.#timer = setTimeout(() => {
        this.#round = this.#renew();
      }, next);
    }
  }

  #take(held: readonly HeldPartition[], kept: readonly number[], claimed: readonly HeldPartition[]): void {
    const lost = held.map((h) => h.partition).filter((partition) => !kept.includes(partition));
    for (const partition of lost) this.#held.delete(partition);
    for (const { partition, epoch } of claimed) this.#held.set(partition, epoch);
    if (lost.length > 0) this.#events.onLost(lost);
  }
}
