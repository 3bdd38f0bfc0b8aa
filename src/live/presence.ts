import type { Bus, PresenceUpdate } from '../bus/bus.ts';
import { splitSnapshot } from '../bus/presence-format.ts';
import type { AccountId } from '../model/ids.ts';
import { MAX_SILENCE_MS, RemotePresence } from './remote-presence.ts';

/** Somebody who comes back within this was not away: connections break, and clients come again. */
const OFFLINE_GRACE_MS = 5_000;
/** Each node tells the number of its last change so often: whoever missed it asks for a snapshot. */
const POSITION_INTERVAL_MS = 5_000;
/** A snapshot is for all: nodes that ask within this get the next one. */
const SNAPSHOT_INTERVAL_MS = 2_000;
/** Which nodes have ended is looked up so often, while others are known. */
const LOOK_INTERVAL_MS = 5_000;
/** Timers are late on a busy machine, and words take a while. */
const STALENESS_MARGIN_MS = 5_000;

/**
 * Who was in the foreground all this time, in ms, was there at its beginning: by then a connection that was dead already
 * has given no sign for long enough, and nobody goes on believing a node that died.
 */
export function maxPresenceStalenessMs(heartbeatMs: number): number {
  return Math.max(2 * heartbeatMs + OFFLINE_GRACE_MS, MAX_SILENCE_MS) + STALENESS_MARGIN_MS;
}

interface PresenceDeps {
  readonly bus: Bus;
  /** The name of this node on the bus. */
  readonly node: string;
  /** The nodes that have a row which has not run out. */
  readonly listLiveNodes: () => Promise<readonly string[]>;
  readonly onChange: (accountId: AccountId, online: boolean) => void;
}

/**
 * Who has a live connection in the foreground: known of this node, believed of others. Each node numbers the changes of
 * its own set and tells them one by one; whoever misses one gets the whole set. Nobody is told again in between.
 */
export class Presence {
  readonly #deps: PresenceDeps;
  readonly #remote: RemotePresence;
  /** The accounts that the others believe to be here: with a session that is looked at, or a moment ago. */
  readonly #announced = new Set<AccountId>();
  /** Accounts whose last connection here went, or is looked at no more, by when that is told. */
  readonly #offlineDueMsByAccount = new Map<AccountId, number>();
  /** Of the last change. A process that takes this one's place begins higher, so that nobody mixes up their changes. */
  #number = Date.now();
  #isSnapshotWanted = false;
  #lastSnapshotMs = Number.NEGATIVE_INFINITY;
  #lastPositionMs = Number.NEGATIVE_INFINITY;
  #lastLookMs = Number.NEGATIVE_INFINITY;
  #isLooking = false;
  #isStopped = false;
  #unsubscribe: () => void = () => {};

  constructor(deps: PresenceDeps) {
    this.#deps = deps;
    this.#remote = new RemotePresence((accountId, online) => {
      if (!this.#announced.has(accountId)) deps.onChange(accountId, online);
    });
  }

  start(): void {
    this.#unsubscribe = this.#deps.bus.subscribe({
      presence: ({ node, update }) => {
        if (node !== this.#deps.node) this.#onUpdate(node, update);
      },
      // Of a node that is known a gap shows in the numbers.
      resync: () => {
        if (this.#remote.nodeCount === 0) this.#publish({ kind: 'request', from: null });
      },
    });
    this.#publish({ kind: 'request', from: null });
  }

  /** Tells at once that nobody is here any more. Idempotent. */
  stop(): void {
    if (this.#isStopped) return;
    this.#isStopped = true;
    this.#unsubscribe();
    this.#publish({ kind: 'leave' });
    this.#offlineDueMsByAccount.clear();
    this.#announced.clear();
  }

  /** Everybody who is online, as far as this node knows. */
  onlineAccounts(): AccountId[] {
    return [...new Set([...this.#announced, ...this.#remote.accounts])];
  }

  /** The account's first connection here. */
  firstForegroundSessionStarted(accountId: AccountId): void {
    this.#offlineDueMsByAccount.delete(accountId);
    if (this.#announced.has(accountId)) return;
    this.#announced.add(accountId);
    this.#announce(accountId, true);
  }

  /** Its last one went. */
  lastForegroundSessionEnded(accountId: AccountId): void {
    this.#offlineDueMsByAccount.set(accountId, performance.now() + OFFLINE_GRACE_MS);
  }

  /** Its last one is looked at no more, which is no accident; told with the next look, so that a flutter tells little. */
  accountInBackground(accountId: AccountId): void {
    this.#offlineDueMsByAccount.set(accountId, performance.now());
  }

  /** Called about every second. */
  tick(): void {
    const nowMs = performance.now();
    for (const [accountId, dueMs] of this.#offlineDueMsByAccount) {
      if (dueMs > nowMs) continue;
      this.#offlineDueMsByAccount.delete(accountId);
      if (this.#announced.delete(accountId)) this.#announce(accountId, false);
    }
    for (const from of this.#remote.takeDueRequests()) this.#publish({ kind: 'request', from });
    if (this.#isSnapshotWanted && nowMs - this.#lastSnapshotMs >= SNAPSHOT_INTERVAL_MS) this.#publishSnapshot(nowMs);
    if (nowMs - this.#lastPositionMs >= POSITION_INTERVAL_MS) {
      this.#lastPositionMs = nowMs;
      this.#publish({ kind: 'position', number: this.#number });
    }
    if (this.#remote.nodeCount > 0 && nowMs - this.#lastLookMs >= LOOK_INTERVAL_MS && !this.#isLooking) {
      this.#lastLookMs = nowMs;
      void this.#dropEndedNodes();
    }
  }

  #announce(accountId: AccountId, online: boolean): void {
    this.#number += 1;
    this.#publish({ kind: 'change', number: this.#number, accountId, online });
    if (!this.#remote.has(accountId)) this.#deps.onChange(accountId, online);
  }

  #publishSnapshot(nowMs: number): void {
    this.#isSnapshotWanted = false;
    this.#lastSnapshotMs = nowMs;
    for (const part of splitSnapshot(this.#number, this.#announced)) this.#publish(part);
  }

  #publish(update: PresenceUpdate): void {
    this.#deps.bus.publish('presence', { node: this.#deps.node, update });
  }

  #onUpdate(node: string, update: PresenceUpdate): void {
    if (update.kind !== 'request') this.#remote.onUpdate(node, update);
    else if (update.from === null || update.from === this.#deps.node) this.#isSnapshotWanted = true;
  }

  async #dropEndedNodes(): Promise<void> {
    this.#isLooking = true;
    const live = await this.#deps.listLiveNodes().catch(() => null);
    this.#isLooking = false;
    if (!this.#isStopped) this.#remote.dropEnded(live);
  }
}
