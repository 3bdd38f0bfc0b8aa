import type { LiveConfig } from '../config/config.ts';
import type { SourceKey } from '../model/source-key.ts';
import type { Refusal } from './live-counts.ts';

/** Waiting connections that one source may have: a quarter of them. */
const SOURCE_SHARE = 4;

/** Who may connect: bounds on connections in all, on those that have not said who they are, and of one source. */
export class Admission {
  readonly #config: LiveConfig;
  readonly #waitingBySource = new Map<SourceKey, number>();
  #waiting = 0;
  #all = 0;

  constructor(config: LiveConfig) {
    this.#config = config;
  }

  /** Connections that have not said who they are. */
  get waiting(): number {
    return this.#waiting;
  }

  get all(): number {
    return this.#all;
  }

  /** Counts a connection, or says why it is refused. `isProxy`: many clients come from this source. */
  enter(source: SourceKey, isProxy: boolean): Refusal | null {
    const { connections, waitingConnections } = this.#config;
    if (this.#all >= connections) return 'too many';
    if (this.#waiting >= waitingConnections) return 'too many waiting';
    const ofSource = this.#waitingBySource.get(source) ?? 0;
    if (!isProxy && ofSource >= Math.max(1, waitingConnections / SOURCE_SHARE)) return 'too many of one source';
    this.#all += 1;
    this.#waiting += 1;
    this.#waitingBySource.set(source, ofSource + 1);
    return null;
  }

  /** A counted connection waits no longer. */
  settled(source: SourceKey): void {
    this.#waiting -= 1;
    const left = (this.#waitingBySource.get(source) ?? 1) - 1;
    if (left === 0) this.#waitingBySource.delete(source);
    else this.#waitingBySource.set(source, left);
  }

  /** A counted connection that did not wait any more is over. */
  leave(): void {
    this.#all -= 1;
  }
}
