import type { Socket } from 'node:net';
import { Client, type Dispatcher } from 'undici';
import { ContinueFilter } from './continue-filter.ts';
import type { Connector, OriginParts } from './connector.ts';

/** A handler of undici with the members that {@link ReuseTrackingConnection} needs in addition. */
export interface AssignableHandler extends Dispatcher.DispatchHandler {
  /** True: the request must be sent on a new socket. */
  readonly needsNewSocket: boolean;
  /**
   * Called when the request gets a connection, which may not be open yet. Returns false if the request was cancelled.
   */
  assign(connection: ReuseTrackingConnection): boolean;
}

type OpenCallback = (...outcome: [null, Socket] | [Error, null]) => void;

/** The bounds for the connections of one client. */
interface KeepAliveBounds {
  readonly keepAliveMs: number;
  /** A socket older than this (in milliseconds) is closed when its request is done. */
  readonly connectionLifetimeMs: number;
  /** The most idle sockets to all origins together. Beyond it, the socket that has been idle longest is closed. */
  readonly maxIdleConnections: number;
}

/**
 * The idle connections of one client to all origins; the first one has been idle longest. undici bounds connections
 * only for each origin, so thousands of hooks on as many hosts would hold as many file descriptors.
 */
export class IdleConnections {
  readonly #bounds: KeepAliveBounds;
  readonly #longestIdleFirst = new Set<ReuseTrackingConnection>();

  constructor(bounds: KeepAliveBounds) {
    this.#bounds = bounds;
  }

  /** Adds a connection whose request has been answered completely. Closes its socket instead if that is too old. */
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

  /** Removes a connection that is in use again, or whose socket is closed. */
  delete(connection: ReuseTrackingConnection): void {
    this.#longestIdleFirst.delete(connection);
  }
}

/**
 * undici's `Client`, which is one connection slot of an origin; with pipelining 1 it has one socket and one request at
 * a time. This subclass knows its socket and how many requests the socket has carried, and so whether it was reused.
 * undici tells handlers neither. Its diagnostics channel does, but for the whole process and at a cost for each
 * request.
 */
export class ReuseTrackingConnection extends Client {
  readonly #idle: IdleConnections;
  #socket: Socket | null = null;
  #continueFilter: ContinueFilter | null = null;
  #requestsOnSocket = 0;
  #socketOpenedAtMs = 0;

  /** @param options the options of undici's `Client`; `connect` is replaced */
  constructor(origin: URL, options: Client.Options, opening: { connector: Connector; idle: IdleConnections }) {
    super(origin, {
      ...options,
      connect: (target, callback) => void this.#open(opening.connector, target, callback),
    });
    this.#idle = opening.idle;
  }

  /** The bytes that were read from the current socket, also after its end; for TLS, the decrypted bytes. */
  get bytesRead(): number {
    return this.#socket?.bytesRead ?? 0;
  }

  /** The age of the current socket in milliseconds. */
  get ageMs(): number {
    return performance.now() - this.#socketOpenedAtMs;
  }

  override dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    const attempt = handler as AssignableHandler;
    // The request timed out in undici's queue, and takes no slot. Returning true makes undici dispatch its next
    // request.
    if (!attempt.assign(this)) return true;
    this.#idle.delete(this);
    // undici calls `dispatch` only while this connection has no request in flight. It opens a new socket after this one
    // is closed.
    if (attempt.needsNewSocket) this.closeSocket();
    return super.dispatch(options, handler);
  }

  /** Counts a request that is about to be written. Returns true if the socket has carried a request before. */
  beginRequestDetectingReuse(): boolean {
    this.#continueFilter?.expectResponse();
    this.#requestsOnSocket += 1;
    return this.#requestsOnSocket > 1;
  }

  /**
   * Called when the answer has been read completely: the connection is idle now. Closes the socket if the receiver
   * answered before it had read the request. Otherwise this server would buffer every later request behind the unread
   * one, up to 1 MiB each.
   */
  release(): void {
    if ((this.#socket?.writableLength ?? 0) > 0) this.closeSocket();
    else this.#idle.add(this);
  }

  /**
   * Closes the socket, if there is one. Must be called only while no request is in flight. undici opens a new socket
   * when it needs one.
   */
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
    this.#socketOpenedAtMs = performance.now();
    socket.once('close', () => {
      if (this.#socket === socket) this.#idle.delete(this);
    });
    callback(null, socket);
  }
}
