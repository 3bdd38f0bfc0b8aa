import { readFileSync } from 'node:fs';
import type { Server, Socket } from 'node:net';
import type { Log } from './log.ts';

/**
 * The share of the process's file descriptors that clients may use; the rest is for the database, deliveries and files.
 */
const CLIENT_DESCRIPTOR_SHARE = 0.75;
const LOG_EVERY_MS = 60_000;

/** The limit of open files in the text of `/proc/<pid>/limits`; null if the text has no such limit. */
export function parseDescriptorLimit(limitsText: string): number | null {
  const text = /^Max open files\s+(\d+)/m.exec(limitsText)?.[1];
  return text === undefined ? null : Number(text);
}

/** The most client connections that this process may have; null: there is no limit. */
export function maxClientConnections(): number | null {
  let limitsText: string;
  try {
    limitsText = readFileSync('/proc/self/limits', 'utf8');
  } catch {
    // The system is not Linux, or /proc is not mounted.
    return null;
  }
  const descriptors = parseDescriptorLimit(limitsText);
  return descriptors === null ? null : Math.floor(descriptors * CLIENT_DESCRIPTOR_SHARE);
}

/**
 * Limits the connections of several listeners together. Without a limit the process can run out of file descriptors. It
 * then resets new connections without a line in the log, and can connect neither to the database nor to receivers.
 */
export class ConnectionLimit {
  readonly #maxConnections: number | null;
  readonly #log: Log;
  /** The number of open connections of each listener. */
  readonly #openByServer = new Map<Server, number>();
  #openConnectionCount = 0;
  #droppedConnectionCount = 0;
  #loggedAt = -Infinity;

  constructor(maxConnections: number | null, log: Log) {
    this.#maxConnections = maxConnections;
    this.#log = log;
  }

  /** The number of new connections that were closed because the limit was reached. */
  get droppedConnectionCount(): number {
    return this.#droppedConnectionCount;
  }

  /** Counts and limits the connections of this listener from now on. */
  watch(server: Server): void {
    if (this.#maxConnections === null) return;
    this.#openByServer.set(server, 0);
    server.on('connection', (socket: Socket) => {
      this.#count(server, 1);
      socket.once('close', () => this.#count(server, -1));
    });
    server.on('drop', () => this.#onDropped());
    this.#updateMaxConnections();
  }

  #count(server: Server, change: 1 | -1): void {
    this.#openByServer.set(server, this.#openByServer.get(server)! + change);
    this.#openConnectionCount += change;
    this.#updateMaxConnections();
  }

  /**
   * Lets each listener use all of the remaining connections. `maxConnections` is used since Node checks it before it
   * creates objects for a connection.
   */
  #updateMaxConnections(): void {
    const left = Math.max(0, this.#maxConnections! - this.#openConnectionCount);
    for (const [server, open] of this.#openByServer) server.maxConnections = open + left;
  }

  #onDropped(): void {
    this.#droppedConnectionCount += 1;
    const now = performance.now();
    if (now - this.#loggedAt < LOG_EVERY_MS) return;
    this.#loggedAt = now;
    const open = this.#openConnectionCount;
    this.#log.warn('connections are refused: raise the limit of open files (LimitNOFILE=, ulimit -n)', {
      open,
      max: this.#maxConnections,
    });
  }
}
