import { readFileSync } from 'node:fs';
import type { Server, Socket } from 'node:net';
import type { Log } from './log.ts';

/** The part of the process's descriptors that clients may hold; the rest is for the database, deliveries and files. */
const CLIENT_SHARE = 0.75;
const LOG_EVERY_MS = 60_000;

/** The number of descriptors that a process may have by `/proc/<pid>/limits`; null where it has no limit, or none is told. */
export function parseDescriptorLimit(limitsText: string): number | null {
  const text = /^Max open files\s+(\d+)/m.exec(limitsText)?.[1];
  return text === undefined ? null : Number(text);
}

/** Connections that clients of this process may hold together; null: nothing bounds them. */
export function maxClientConnections(): number | null {
  let limitsText: string;
  try {
    limitsText = readFileSync('/proc/self/limits', 'utf8');
  } catch {
    // Not Linux, or /proc is not mounted.
    return null;
  }
  const descriptors = parseDescriptorLimit(limitsText);
  return descriptors === null ? null : Math.floor(descriptors * CLIENT_SHARE);
}

/**
 * A bound on the connections of several listeners together. Without one the process runs out of descriptors: new clients
 * are reset without a line in the log, and neither the database nor a receiver can be connected to.
 */
export class ConnectionLimit {
  readonly #max: number | null;
  readonly #log: Log;
  /** Open connections by listener. */
  readonly #openByServer = new Map<Server, number>();
  #openTotal = 0;
  #droppedTotal = 0;
  #loggedAt = -Infinity;

  constructor(max: number | null, log: Log) {
    this.#max = max;
    this.#log = log;
  }

  /** Connections that were closed at once. */
  get droppedTotal(): number {
    return this.#droppedTotal;
  }

  /** From now on the connections of this listener count. */
  watch(server: Server): void {
    if (this.#max === null) return;
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
    this.#openTotal += change;
    this.#updateMaxConnections();
  }

  /** What is left is left for each listener. Node compares before it makes anything of a connection. */
  #updateMaxConnections(): void {
    const left = Math.max(0, this.#max! - this.#openTotal);
    for (const [server, open] of this.#openByServer) server.maxConnections = open + left;
  }

  #onDropped(): void {
    this.#droppedTotal += 1;
    const now = performance.now();
    if (now - this.#loggedAt < LOG_EVERY_MS) return;
    this.#loggedAt = now;
    const open = this.#openTotal;
    this.#log.warn('connections are refused: raise the limit of open files (LimitNOFILE=, ulimit -n)', {
      open,
      max: this.#max,
    });
  }
}
