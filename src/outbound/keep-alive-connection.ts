import type { Socket } from 'node:net';
import { Client, type Dispatcher } from 'undici';
import { ContinueFilter } from './continue-filter.ts';
import type { Connector, OriginParts } from './connector.ts';

/** What a handler that goes through {@link ReuseTrackingConnection} must offer besides undici's own calls. */
export interface AssignableHandler extends Dispatcher.DispatchHandler {
  /** Whether this connection may carry a request that must not go out on a reused socket. */
  readonly needsNewSocket: boolean;
  /** The request has got its connection, which may still have to be opened. False: it is not wanted any more. */
  assign(connection: ReuseTrackingConnection): boolean;
}

type OpenCallback = (...outcome: [null, Socket] | [Error, null]) => void;

/** Bounds over all connections of one client. */
interface KeepAliveBounds {
  readonly keepAliveMs: number;
  /** A socket older than this is closed when its request is done. */
  readonly connectionLifetimeMs: number;
  /** Idle sockets over all origins; past it the one that is idle longest is closed. */
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

  /** A request has been answered in full on this connection. */
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

  /** The connection is taken into use, or its socket is closed. */
  delete(connection: ReuseTrackingConnection): void {
    this.#longestIdleFirst.delete(connection);
  }
}

/**
 * undici's `Client`, that is one connection slot of an origin, which knows the socket it writes to and how many
 * requests went over it. That is how "this was a reused connection" is known: with pipelining 1 a client has one socket
 * and one request at a time, every socket comes from our connector, and every request passes `dispatch`. undici itself
 * tells handlers neither (its diagnostics channel does, but for the whole process and at a cost per request).
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

  /** Bytes read from the present socket, also after it was closed; of TLS the decrypted ones. */
  get bytesRead(): number {
    return this.#socket?.bytesRead ?? 0;
  }

  /** Age of the present socket in milliseconds. */
  get ageMs(): number {
    return performance.now() - this.#openedAt;
  }

  override dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    const attempt = handler as AssignableHandler;
    // True is "give me another": what has timed out in undici's queue takes no slot.
    if (!attempt.assign(this)) return true;
    this.#idle.delete(this);
    // A client that is handed a request has none under way. undici opens another socket once this one is closed.
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
   * The answer has been read to its end, the socket may serve again. Not one whose request was answered before it was
   * taken: a receiver that answers without reading would have us keep every next request behind it, up to 1 MiB each.
   */
  release(): void {
    if ((this.#socket?.writableLength ?? 0) > 0) this.closeSocket();
    else this.#idle.add(this);
  }

  /** Closes the socket, if there is one. Only for idle connections: undici then reopens it when it is needed. */
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
