import type { Socket } from 'node:net';
import { Client, type Dispatcher } from 'undici';
import { ContinueFilter } from './continue-filter.ts';
import type { Connector, OriginParts } from './connector.ts';

/** The methods that a handler of {@link ReuseTrackingConnection} needs besides undici's own. */
export interface AssignableHandler extends Dispatcher.DispatchHandler {
  /** True: the request must not go out on a reused socket. */
  readonly needsNewSocket: boolean;
  /** The request has got its connection, which may not be open yet. False: the request was cancelled. */
  assign(connection: ReuseTrackingConnection): boolean;
}

type OpenCallback = (...outcome: [null, Socket] | [Error, null]) => void;

/** Bounds over all connections of one client. */
interface KeepAliveBounds {
  readonly keepAliveMs: number;
  /** A socket older than this is closed when its request is done. */
  readonly connectionLifetimeMs: number;
  /** Idle sockets over all origins; beyond this bound the socket that has been idle longest is closed. */
  readonly maxIdleConnections: number;
}

/**
 * The idle connections of one client over all origins, the longest idle first. undici bounds connections per origin
 * only, so thousands of hooks on as many hosts would hold as many descriptors.
 */
export class IdleConnections {
  readonly #bounds: KeepAliveBounds;
  readonly #longestIdleFirst = new Set<ReuseTrackingConnection>();

  constructor(bounds: KeepAliveBounds) {
    this.#bounds = bounds;
  }

  /** A request has been answered completely on this connection. */
  add(connection: ReuseTrackingConnection): void {
    if (connection.ageMs > this.#bounds.connectionLifetimeMs) {
      connection.closeSocket();
      return;
    }
    this.#longestIdleFirst.add(connection);
    if (this.#longestIdleFirst.size <= this.#bounds.maxIdleConnections) return;
    for (const longestIdle of this.#longestIdleFirst) {
      this.#longestIdleFirst.delete(longestIdle);
      longestIdle.closeSocket();
      return;
    }
  }

  /** The connection is in use again, or its socket is closed. */
  delete(connection: ReuseTrackingConnection): void {
    this.#longestIdleFirst.delete(connection);
  }
}

/**
 * undici's `Client`, which is one connection slot of an origin. This subclass knows the socket it writes to and how
 * many requests went over it, and so whether it was reused. With pipelining 1 a client has one socket and one request
 * at a time. Every socket comes from our connector, and every request passes `dispatch`. undici tells handlers neither
 * the socket nor whether it was reused. Its diagnostics channel does, but for the whole process and at a cost per
 * request.
 */
export class ReuseTrackingConnection extends Client {
  readonly #idle: IdleConnections;
  #socket: Socket | null = null;
  #continueFilter: ContinueFilter | null = null;
  #requestsOnSocket = 0;
  #openedAt = 0;

  /** @param options those of undici's `Client`; `connect` is replaced */
  constructor(origin: URL, options: Client.Options, opening: { connector: Connector; idle: IdleConnections }) {
    super(origin, {
      ...options,
      connect: (target, callback) => void this.#open(opening.connector, target, callback),
    });
    this.#idle = opening.idle;
  }

  /** Bytes read from the current socket, even after it was closed; decrypted ones for TLS. */
  get bytesRead(): number {
    return this.#socket?.bytesRead ?? 0;
  }

  /** Age of the current socket in milliseconds. */
  get ageMs(): number {
    return performance.now() - this.#openedAt;
  }

  override dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    const attempt = handler as AssignableHandler;
    // True asks undici for its next request: a request that timed out in undici's queue takes no slot.
    if (!attempt.assign(this)) return true;
    this.#idle.delete(this);
    // undici hands a request only to a client without one in flight. It opens another socket once this one is closed.
    if (attempt.needsNewSocket) this.closeSocket();
    return super.dispatch(options, handler);
  }

  /** Counts a request that is about to be written; true when the socket carried one before. */
  beginRequestDetectingReuse(): boolean {
    this.#continueFilter?.begin();
    this.#requestsOnSocket += 1;
    return this.#requestsOnSocket > 1;
  }

  /**
   * The answer has been read completely, so the socket may serve again. A socket is closed if the receiver answered
   * before it had read the request. Otherwise such a receiver would make us buffer every later request behind the
   * unread one, up to 1 MiB each.
   */
  release(): void {
    if ((this.#socket?.writableLength ?? 0) > 0) this.closeSocket();
    else this.#idle.add(this);
  }

  /** Closes the socket, if there is one. Only for idle connections: undici then reopens it on demand. */
  closeSocket(): void {
    this.#socket?.destroy();
  }

  async #open(connector: Connector, target: OriginParts, callback: OpenCallback): Promise<void> {
    let socket: Socket;
    try {
      socket = await connector.open(target);
    } catch (error) {
      callback(error as Error, null);
      return;
    }
    this.#socket = socket;
    this.#continueFilter = new ContinueFilter(socket);
    this.#requestsOnSocket = 0;
    this.#openedAt = performance.now();
    socket.once('close', () => {
      if (this.#socket === socket) this.#idle.delete(this);
    });
    callback(null, socket);
  }
}
