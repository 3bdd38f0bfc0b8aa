import { DURATION_BOUNDS_S, Histogram } from '../../histogram.ts';
import { Connection, type ConnectionTarget, type Sql, type Transaction } from './connection.ts';
import { collectRevs, type ConversationRev } from './committed-revs.ts';
import { DatabaseUnavailableError } from './database-error.ts';

export interface PoolOptions {
  readonly name: string;
  readonly maxConnections: number;
  /** The most calls that may wait for a connection; one more is rejected at once. */
  readonly maxWaitingCalls: number;
  /** The default deadline of one call, which covers waiting for a connection and all its queries. */
  readonly timeoutMs: number;
  /** True: PostgreSQL plans the statements of the pool once, for any values. */
  readonly forceGenericPlans?: boolean;
  /**
   * True: sessions of the pool work while other sessions wait for `timelineGate` at the beginning of a new timeline.
   */
  readonly ignoresTimelineGate?: boolean;
  /** Called after a commit with the revs that it assigned (`noteRev`), before the caller continues. Must not throw. */
  readonly onRevsCommitted?: (revs: readonly ConversationRev[]) => void;
}

/** Counters since the start of the process, for metrics. */
export interface PoolCounters {
  /** How long calls waited when no connection was free. */
  readonly waitS: Histogram;
  /** The number of calls that got no connection: too many waited already, or their deadline passed. */
  refusedCalls: number;
}

/** The state of one use of the database, for metrics. */
export interface PoolMetrics {
  /** The most connections that may be open; each is opened when it is first needed. */
  readonly maxConnections: number;
  /** The number of connections that a call is using right now. */
  readonly busyConnections: number;
  /** The number of calls that wait for a connection right now. */
  readonly waitingCalls: number;
  readonly counts: PoolCounters;
}

interface Waiter {
  readonly resolve: (connection: Connection) => void;
  readonly reject: (error: Error) => void;
  readonly timer: NodeJS.Timeout;
}

/**
 * A fixed number of connections and a bounded queue of calls. Each use of the database has its own pool, so that a slow
 * search cannot starve the intake.
 */
export class Pool implements PoolMetrics {
  readonly counts: PoolCounters = { waitS: new Histogram(DURATION_BOUNDS_S), refusedCalls: 0 };
  readonly #options: PoolOptions;
  readonly #connections: readonly Connection[];
  readonly #idle: Connection[];
  readonly #waiters: Waiter[] = [];
  #stopped = false;

  constructor(target: ConnectionTarget, options: PoolOptions) {
    this.#options = options;
    this.#connections = Array.from(
      { length: options.maxConnections },
      () => new Connection(target, options.name, options),
    );
    this.#idle = [...this.#connections];
  }

  /**
   * Runs `work` with a connection of its own. `timeoutMs` bounds the wait and the work together. Rejects with
   * DatabaseUnavailableError (nothing was sent), CommitUnknownError (outcome unknown), or the rejection of `work`.
   */
  async run<T>(work: (sql: Sql) => Promise<T>, timeoutMs = this.#options.timeoutMs): Promise<T> {
    const started = performance.now();
    const leftMs = (): number => Math.max(1, timeoutMs - (performance.now() - started));
    for (;;) {
      const connection = await this.#acquire(leftMs());
      try {
        // The pool may have stopped while the call waited: nobody would close a session that is opened now.
        if (this.#stopped) throw new DatabaseUnavailableError('the server is stopping');
        return await connection.run(work, leftMs());
      } catch (error) {
        // Nothing was sent, so the call is repeated on another connection, if one does not wait for an abandoned
        // backend (a server process that is still busy for a lost session).
        const mayRetry =
          error instanceof DatabaseUnavailableError && connection.isAwaitingAbandonedBackend && !this.#stopped;
        if (!mayRetry || this.#connections.every((each) => each.isAwaitingAbandonedBackend)) throw error;
      } finally {
        this.#release(connection);
      }
    }
  }

  /** Like `run`, but in one transaction, which is committed when `work` resolves and rolled back when it rejects. */
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

  get maxConnections(): number {
    return this.#connections.length;
  }

  get busyConnections(): number {
    return this.#connections.length - this.#idle.length;
  }

  get waitingCalls(): number {
    return this.#waiters.length;
  }

  /** Rejects waiting calls and closes every connection, which rejects calls in progress. */
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
    if (this.#waiters.length >= this.#options.maxWaitingCalls) {
      this.counts.refusedCalls += 1;
      return Promise.reject(
        new DatabaseUnavailableError(`too many calls wait for the ${this.#options.name} connections`),
      );
    }
    const startedAt = performance.now();
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.counts.refusedCalls += 1;
        this.#waiters.splice(this.#waiters.indexOf(waiter), 1);
        reject(new DatabaseUnavailableError(`no ${this.#options.name} connection was free within ${timeoutMs} ms`));
      }, timeoutMs);
      const onAcquired = (connection: Connection): void => {
        this.counts.waitS.observe((performance.now() - startedAt) / 1_000);
        resolve(connection);
      };
      const waiter: Waiter = { resolve: onAcquired, reject, timer };
      this.#waiters.push(waiter);
    });
  }

  /**
   * A connection that waits for an abandoned backend rejects calls at once, so it would attract every call. The pool
   * gives out such a connection only if all connections are idle and wait like this.
   */
  #takeIdlePreferringUsable(): Connection | undefined {
    // Prefers the most recently used connection, which is the most likely to be open.
    const index = this.#idle.findLastIndex((connection) => !connection.isAwaitingAbandonedBackend);
    if (index !== -1) return this.#idle.splice(index, 1)[0];
    return this.#idle.length === this.#connections.length ? this.#idle.pop() : undefined;
  }

  #release(connection: Connection): void {
    const next = connection.isAwaitingAbandonedBackend && this.busyConnections > 1 ? undefined : this.#waiters.shift();
    if (next === undefined) {
      this.#idle.push(connection);
      return;
    }
    clearTimeout(next.timer);
    next.resolve(connection);
  }
}
