import { DURATION_BOUNDS_S, Histogram } from '../../histogram.ts';
import { Connection, type ConnectionTarget, type Sql, type Transaction } from './connection.ts';
import { collectRevs, type ConversationRev } from './committed-revs.ts';
import { DatabaseUnavailableError } from './database-error.ts';

export interface PoolOptions {
  readonly name: string;
  readonly size: number;
  /** Calls that may wait for a connection; one more is refused at once. */
  readonly maxWaiting: number;
  /** Default deadline of one call: waiting for a connection and all its queries. */
  readonly timeoutMs: number;
  /** True: its statements are planned once, for any values. */
  readonly forceGenericPlans?: boolean;
  /** True: it is used while others wait for what a new timeline has to be preceded by. */
  readonly ignoresTimelineGate?: boolean;
  /** Told after a commit which revs it gave out (`noteRev`), before whoever waits for it. Must not throw. */
  readonly onRevsCommitted?: (revs: readonly ConversationRev[]) => void;
}

/** Counters since the start, for metrics. */
export interface PoolCounters {
  /** How long calls waited that found no connection free. */
  readonly waitS: Histogram;
  /** Calls that got no connection: too many waited already, or their time was over. */
  refused: number;
}

/** How a use of the database fares, for metrics. */
export interface PoolMetrics {
  /** Connections, open or to be opened when they are needed. */
  readonly size: number;
  /** Connections that a call is using right now. */
  readonly busy: number;
  /** Calls waiting for a connection right now. */
  readonly waiting: number;
  readonly counts: PoolCounters;
}

interface Waiter {
  readonly resolve: (connection: Connection) => void;
  readonly reject: (error: Error) => void;
  readonly timer: NodeJS.Timeout;
}

/**
 * A fixed number of connections and a bounded line of callers before them. Each use of the database has its own pool,
 * so that a slow search cannot starve the intake.
 */
export class Pool implements PoolMetrics {
  readonly counts: PoolCounters = { waitS: new Histogram(DURATION_BOUNDS_S), refused: 0 };
  readonly #options: PoolOptions;
  readonly #connections: readonly Connection[];
  readonly #idle: Connection[];
  readonly #waiters: Waiter[] = [];
  #stopped = false;

  constructor(target: ConnectionTarget, options: PoolOptions) {
    this.#options = options;
    this.#connections = Array.from({ length: options.size }, () => new Connection(target, options.name, options));
    this.#idle = [...this.#connections];
  }

  /**
   * Runs `work` with a connection of its own. `timeoutMs` bounds waiting and working together. Rejects with
   * DatabaseUnavailableError (nothing was sent), CommitUnknownError (outcome unknown), or what `work` rejects with.
   */
  async run<T>(work: (sql: Sql) => Promise<T>, timeoutMs = this.#options.timeoutMs): Promise<T> {
    const started = performance.now();
    const leftMs = (): number => Math.max(1, timeoutMs - (performance.now() - started));
    for (;;) {
      const connection = await this.#acquire(leftMs());
      try {
        // Stopped between the two: a session opened now would be closed by nobody.
        if (this.#stopped) throw new DatabaseUnavailableError('the server is stopping');
        return await connection.run(work, leftMs());
      } catch (error) {
        // Nothing was sent, and the others may have no transaction that stands still.
        const mayRetry =
          error instanceof DatabaseUnavailableError && connection.isAwaitingAbandonedBackend && !this.#stopped;
        if (!mayRetry || this.#connections.every((each) => each.isAwaitingAbandonedBackend)) throw error;
      } finally {
        this.#release(connection);
      }
    }
  }

  /** The same inside one transaction, committed when `work` resolves and rolled back when it rejects. */
  async transaction<T>(work: (tx: Transaction) => Promise<T>, timeoutMs = this.#options.timeoutMs): Promise<T> {
    const revs: ConversationRev[] = [];
    const result = await this.run(async (sql) => {
      return (await sql.begin((tx) => {
        revs.length = 0;
        collectRevs(tx, revs);
        return work(tx);
      })) as T;
    }, timeoutMs);
    if (revs.length > 0) this.#options.onRevsCommitted?.(revs);
    return result;
  }

  get size(): number {
    return this.#connections.length;
  }

  get busy(): number {
    return this.#connections.length - this.#idle.length;
  }

  get waiting(): number {
    return this.#waiters.length;
  }

  /** Refuses what waits and closes every connection. What is under way is rejected. */
  stop(): void {
    this.#stopped = true;
    for (const waiter of this.#waiters.splice(0)) {
      clearTimeout(waiter.timer);
      waiter.reject(new DatabaseUnavailableError('the server is stopping'));
    }
    for (const connection of this.#connections) connection.close();
  }

  #acquire(timeoutMs: number): Promise<Connection> {
    if (this.#stopped) return Promise.reject(new DatabaseUnavailableError('the server is stopping'));
    const idle = this.#takeIdlePreferringUsable();
    if (idle !== undefined) return Promise.resolve(idle);
    if (this.#waiters.length >= this.#options.maxWaiting) {
      this.counts.refused += 1;
      return Promise.reject(
        new DatabaseUnavailableError(`too many calls wait for the ${this.#options.name} connections`),
      );
    }
    const startedAt = performance.now();
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.counts.refused += 1;
        this.#waiters.splice(this.#waiters.indexOf(waiter), 1);
        reject(new DatabaseUnavailableError(`no ${this.#options.name} connection was free within ${timeoutMs} ms`));
      }, timeoutMs);
      const taken = (connection: Connection): void => {
        this.counts.waitS.observe((performance.now() - startedAt) / 1_000);
        resolve(connection);
      };
      const waiter: Waiter = { resolve: taken, reject, timer };
      this.#waiters.push(waiter);
    });
  }

  /** One that is stalled refuses at once: it is given out only where all are, or it would draw every call to itself. */
  #takeIdlePreferringUsable(): Connection | undefined {
    // The most recently used first: it is the likeliest to be open.
    const index = this.#idle.findLastIndex((connection) => !connection.isAwaitingAbandonedBackend);
    if (index !== -1) return this.#idle.splice(index, 1)[0];
    return this.#idle.length === this.#connections.length ? this.#idle.pop() : undefined;
  }

  #release(connection: Connection): void {
    const next = connection.isAwaitingAbandonedBackend && this.busy > 1 ? undefined : this.#waiters.shift();
    if (next === undefined) {
      this.#idle.push(connection);
      return;
    }
    clearTimeout(next.timer);
    next.resolve(connection);
  }
}
