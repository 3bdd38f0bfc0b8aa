import type { LiveConnectionsConfig } from '../config/config.ts';
import type { SourceKey } from '../model/source-key.ts';
import type { ConnectionRejection } from './live-counts.ts';

/** One source may hold at most a quarter of the connections that may be open without a sign-in. */
const UNAUTHENTICATED_PER_SOURCE_DIVISOR = 4;

/**
 * Bounds the number of connections: all, those that have not signed in, and those of one source that have not signed
 * in.
 */
export class ConnectionQuotas {
  readonly #config: LiveConnectionsConfig;
  readonly #unauthenticatedBySource = new Map<SourceKey, number>();
  #unauthenticatedConnections = 0;
  #totalConnections = 0;

  constructor(config: LiveConnectionsConfig) {
    this.#config = config;
  }

  /** Connections that have not signed in. */
  get unauthenticatedConnections(): number {
    return this.#unauthenticatedConnections;
  }

  get totalConnections(): number {
    return this.#totalConnections;
  }

  /** Counts a connection, or returns why it is refused. `isProxy`: many clients connect from this source. */
  acquire(source: SourceKey, isProxy: boolean): ConnectionRejection | null {
    const { maxLiveConnections: connections, maxUnauthenticatedConnections } = this.#config;
    if (this.#totalConnections >= connections) return 'too_many_connections';
    if (this.#unauthenticatedConnections >= maxUnauthenticatedConnections) return 'too_many_unauthenticated';
    const fromSource = this.#unauthenticatedBySource.get(source) ?? 0;
    if (!isProxy && fromSource >= Math.max(1, maxUnauthenticatedConnections / UNAUTHENTICATED_PER_SOURCE_DIVISOR))
      return 'too_many_from_source';
    this.#totalConnections += 1;
    this.#unauthenticatedConnections += 1;
    this.#unauthenticatedBySource.set(source, fromSource + 1);
    return null;
  }

  /** To be called when a connection that `acquire` has accepted signs in, or ends without a sign-in. */
  releaseUnauthenticated(source: SourceKey): void {
    this.#unauthenticatedConnections -= 1;
    const remaining = (this.#unauthenticatedBySource.get(source) ?? 1) - 1;
    if (remaining === 0) this.#unauthenticatedBySource.delete(source);
    else this.#unauthenticatedBySource.set(source, remaining);
  }

  /** To be called when a connection that `acquire` has accepted has ended, after `releaseUnauthenticated`. */
  release(): void {
    this.#totalConnections -= 1;
  }
}
