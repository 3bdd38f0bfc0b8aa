import { H2Connection, H2Failure, type H2Response } from './h2-connection.ts';

/** Options of the connections to one origin, and of the requests that wait for a connection. */
interface H2PoolOptions {
  readonly ca: readonly string[] | null;
  readonly connectTimeoutMs: number;
  /** The most connections (4 by default), and the most waiting requests (2,000 by default). */
  readonly maxConnections?: number;
  readonly maxWaitingRequests?: number;
}

/**
 * A request that waits for a connection with capacity. `take` must send the request in the same turn of the event loop,
 * so that the next waiting request sees the rest of the capacity.
 */
interface WaitingRequestCallbacks {
  readonly take: (connection: H2Connection) => void;
  readonly fail: (failure: H2Failure) => void;
}

/**
 * With this many draining connections, which accept no further requests, no other connection is opened. Requests have a
 * time-out, which bounds how long a connection drains.
 */
const MAX_DRAINING_WHEN_OPENING = 8;
/** The most retries of a request that was lost with its connection. */
const MAX_RETRIES = 2;
/** If a connection exists and a further one cannot be opened, the next try waits for this time. */
const EXTRA_CONNECTION_RETRY_MS = 1_000;

/**
 * Manages the HTTP/2 connections to one origin: few, with many requests on each. Another is opened only when the
 * existing ones are full.
 */
export class H2Pool {
  readonly #origin: string;
  readonly #options: H2PoolOptions;
  readonly #connections = new Set<H2Connection>();
  /** The requests that wait for a connection, in the order of their arrival. */
  readonly #waitingRequests = new Set<WaitingRequestCallbacks>();
  #nextExtraConnectionAtMs = 0;
  #stopped = false;

  constructor(origin: string, options: H2PoolOptions) {
    this.#origin = origin;
    this.#options = options;
  }

  /**
   * Sends one POST within `timeoutMs`, including the wait for a connection. A request that was lost with its connection
   * is retried at once, so a duplicate must be harmless. `headers`: alternating names and values. Rejects with an
   * H2Failure.
   */
  async post(headers: readonly string[], body: string, timeoutMs: number): Promise<H2Response> {
    const deadlineMs = performance.now() + timeoutMs;
    for (let retries = 0; ; retries += 1) {
      try {
        return await this.#startWhenAvailable(deadlineMs, (connection) =>
          connection.request(headers, body, Math.max(1, deadlineMs - performance.now())),
        );
      } catch (error) {
        const isLost = error instanceof H2Failure && error.reason === 'lost';
        if (!isLost || retries >= MAX_RETRIES || this.#stopped) throw error;
      }
    }
  }

  /** Closes all connections; requests in progress fail. Idempotent. */
  stop(): void {
    this.#stopped = true;
    this.#failWaitingRequests(new H2Failure('stopped'));
    for (const connection of this.#connections) connection.destroy();
  }

  #startWhenAvailable(
    deadlineMs: number,
    request: (connection: H2Connection) => Promise<H2Response>,
  ): Promise<H2Response> {
    const { maxWaitingRequests = 2_000 } = this.#options;
    if (this.#stopped) return Promise.reject(new H2Failure('stopped'));
    // If other requests are waiting for a connection, this request has to wait behind them.
    const connection = this.#waitingRequests.size === 0 ? this.#findConnectionWithCapacity() : null;
    if (connection !== null) return request(connection);
    if (this.#waitingRequests.size >= maxWaitingRequests) return Promise.reject(new H2Failure('busy'));
    return new Promise((resolve, reject) => {
      const remove = (): void => {
        clearTimeout(timer);
        this.#waitingRequests.delete(waiter);
      };
      const waiter: WaitingRequestCallbacks = {
        take: (freeConnection) => {
          remove();
          resolve(request(freeConnection));
        },
        fail: (failure) => {
          remove();
          reject(failure);
        },
      };
      const leftMs = Math.max(1, deadlineMs - performance.now());
      const timer = setTimeout(() => waiter.fail(new H2Failure('timeout')), leftMs);
      this.#waitingRequests.add(waiter);
      this.#openIfNeeded();
    });
  }

  #findConnectionWithCapacity(): H2Connection | null {
    for (const connection of this.#connections) if (connection.hasCapacity) return connection;
    return null;
  }

  #failWaitingRequests(failure: H2Failure): void {
    for (const waiter of this.#waitingRequests) waiter.fail(failure);
  }

  /** Called when a connection gained or lost capacity, or was closed. */
  #onCapacityChange(connection: H2Connection): void {
    if (connection.isClosed) this.#connections.delete(connection);
    const { connectFailure } = connection;
    if (connectFailure !== null) {
      this.#nextExtraConnectionAtMs = performance.now() + EXTRA_CONNECTION_RETRY_MS;
      // If no other connection accepts requests, the waiting requests fail now.
      if (this.#acceptingConnections().length === 0) this.#failWaitingRequests(connectFailure);
    }
    for (const waiter of this.#waitingRequests) {
      const freeConnection = this.#findConnectionWithCapacity();
      if (freeConnection === null) break;
      waiter.take(freeConnection);
    }
    this.#openIfNeeded();
  }

  #acceptingConnections(): H2Connection[] {
    return [...this.#connections].filter((connection) => !connection.isDraining);
  }

  #openIfNeeded(): void {
    const { maxConnections = 4, ca, connectTimeoutMs } = this.#options;
    if (this.#stopped || this.#waitingRequests.size === 0) return;
    const accepting = this.#acceptingConnections();
    // Only one connection is opened at a time: its settings say how many requests it accepts, so no further one may be
    // needed.
    if (accepting.some((connection) => connection.isOpening) || accepting.length >= maxConnections) return;
    if (accepting.length > 0 && performance.now() < this.#nextExtraConnectionAtMs) return;
    if (this.#connections.size - accepting.length >= MAX_DRAINING_WHEN_OPENING) return;
    const connection = new H2Connection(this.#origin, {
      ca,
      connectTimeoutMs,
      onCapacityChange: () => this.#onCapacityChange(connection),
    });
    this.#connections.add(connection);
  }
}
