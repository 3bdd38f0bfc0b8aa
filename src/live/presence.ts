import type { Bus, PresenceUpdate } from '../bus/bus.ts';
import { splitSnapshot } from '../bus/presence-format.ts';
import type { AccountId } from '../model/ids.ts';
import { MAX_NODE_SILENCE_MS, RemotePresence } from './remote-presence.ts';

/** A client that reconnects within this time does not count as offline. */
const OFFLINE_GRACE_MS = 5_000;
/**
 * The interval at which each node sends the number of its last change: a node that missed that change asks for a
 * snapshot.
 */
const CHANGE_NUMBER_INTERVAL_MS = 5_000;
/**
 * The least time between two snapshots (the whole set of online accounts) that this node sends. All nodes receive each
 * snapshot, so one snapshot answers all requests that came in this time.
 */
const SNAPSHOT_INTERVAL_MS = 2_000;
/** The interval at which a node that received updates of other nodes looks up which of these have stopped. */
const LIST_LIVE_NODES_INTERVAL_MS = 5_000;
/** The part of `maxPresenceStalenessMs` for late timers on a busy machine, and for notifications on their way. */
const STALENESS_MARGIN_MS = 5_000;

/**
 * The most milliseconds for which an account counts as in the foreground after its user left the app. They pass until a
 * dead connection has missed its heartbeats, or until the other nodes drop a node that died.
 */
export function maxPresenceStalenessMs(heartbeatMs: number): number {
  return Math.max(2 * heartbeatMs + OFFLINE_GRACE_MS, MAX_NODE_SILENCE_MS) + STALENESS_MARGIN_MS;
}

interface PresenceDeps {
  readonly bus: Bus;
  /** This node's name on the bus. */
  readonly node: string;
  /** The nodes whose row in the database has not expired. */
  readonly listLiveNodes: () => Promise<readonly string[]>;
  readonly onChange: (accountId: AccountId, online: boolean) => void;
}

/**
 * Tracks which accounts have a live connection in the foreground, on this node and on others. Each node numbers the
 * changes of its own set and sends them one by one. A node that misses a change asks for the whole set. Otherwise no
 * change is sent twice.
 */
export class Presence {
  readonly #deps: PresenceDeps;
  readonly #remote: RemotePresence;
  /** The accounts that were announced as online on this node: with a session in the foreground, now or a moment ago. */
  readonly #announced = new Set<AccountId>();
  /**
   * The times at which to announce accounts as offline whose last connection on this node closed or went to the
   * background.
   */
  readonly #offlineDueMsByAccount = new Map<AccountId, number>();
  /**
   * The number of the last change. It starts at the current time, so that the next process of this node begins with a
   * higher number. Other nodes then do not mix up the changes of both processes.
   */
  #lastChangeNumber = Date.now();
  #isSnapshotWanted = false;
  #lastSnapshotMs = Number.NEGATIVE_INFINITY;
  #lastChangeNumberSentAtMs = Number.NEGATIVE_INFINITY;
  #lastListedLiveNodesMs = Number.NEGATIVE_INFINITY;
  #isListingLiveNodes = false;
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
      // Once this node knows another one, no request is needed: a gap in the numbers of a node's changes shows a loss.
      resync: () => {
        if (this.#remote.nodeCount === 0) this.#publish({ kind: 'request', snapshotOfNode: null });
      },
    });
    this.#publish({ kind: 'request', snapshotOfNode: null });
  }

  /** Announces at once that nobody is online on this node. Idempotent. */
  stop(): void {
    if (this.#isStopped) return;
    this.#isStopped = true;
    this.#unsubscribe();
    this.#publish({ kind: 'leave' });
    this.#offlineDueMsByAccount.clear();
    this.#announced.clear();
  }

  /** The accounts that are online on any node, as far as this node knows. */
  onlineAccounts(): AccountId[] {
    return [...new Set([...this.#announced, ...this.#remote.accounts])];
  }

  /** Announces the account as online. To be called when its first session in the foreground on this node starts. */
  firstForegroundSessionStarted(accountId: AccountId): void {
    this.#offlineDueMsByAccount.delete(accountId);
    if (this.#announced.has(accountId)) return;
    this.#announced.add(accountId);
    this.#announce(accountId, true);
  }

  /**
   * To be called when the account's last session in the foreground on this node ends. The account is announced as
   * offline after OFFLINE_GRACE_MS.
   */
  lastForegroundSessionEnded(accountId: AccountId): void {
    this.#offlineDueMsByAccount.set(accountId, performance.now() + OFFLINE_GRACE_MS);
  }

  /**
   * To be called when the account's last session in the foreground on this node goes to the background. The next tick
   * announces the account as offline, so that quick switches cost little.
   */
  lastForegroundSessionBackgrounded(accountId: AccountId): void {
    this.#offlineDueMsByAccount.set(accountId, performance.now());
  }

  /** Announces due changes, and sends due requests and snapshots. Called about every second. */
  tick(): void {
    const nowMs = performance.now();
    for (const [accountId, dueMs] of this.#offlineDueMsByAccount) {
      if (dueMs > nowMs) continue;
      this.#offlineDueMsByAccount.delete(accountId);
      if (this.#announced.delete(accountId)) this.#announce(accountId, false);
    }
    for (const nodeName of this.#remote.takeDueRequests()) this.#publish({ kind: 'request', snapshotOfNode: nodeName });
    if (this.#isSnapshotWanted && nowMs - this.#lastSnapshotMs >= SNAPSHOT_INTERVAL_MS) this.#publishSnapshot(nowMs);
    if (nowMs - this.#lastChangeNumberSentAtMs >= CHANGE_NUMBER_INTERVAL_MS) {
      this.#lastChangeNumberSentAtMs = nowMs;
      this.#publish({ kind: 'position', changeNumber: this.#lastChangeNumber });
    }
    if (
      this.#remote.nodeCount > 0 &&
      nowMs - this.#lastListedLiveNodesMs >= LIST_LIVE_NODES_INTERVAL_MS &&
      !this.#isListingLiveNodes
    ) {
      this.#lastListedLiveNodesMs = nowMs;
      void this.#dropEndedNodes();
    }
  }

  #announce(accountId: AccountId, online: boolean): void {
    this.#lastChangeNumber += 1;
    this.#publish({ kind: 'change', changeNumber: this.#lastChangeNumber, accountId, online });
    if (!this.#remote.has(accountId)) this.#deps.onChange(accountId, online);
  }

  #publishSnapshot(nowMs: number): void {
    this.#isSnapshotWanted = false;
    this.#lastSnapshotMs = nowMs;
    for (const part of splitSnapshot(this.#lastChangeNumber, this.#announced)) this.#publish(part);
  }

  #publish(update: PresenceUpdate): void {
    this.#deps.bus.publish('presence', { node: this.#deps.node, update });
  }

  #onUpdate(node: string, update: PresenceUpdate): void {
    if (update.kind !== 'request') this.#remote.onUpdate(node, update);
    else if (update.snapshotOfNode === null || update.snapshotOfNode === this.#deps.node) this.#isSnapshotWanted = true;
  }

  async #dropEndedNodes(): Promise<void> {
    this.#isListingLiveNodes = true;
    const liveNodes = await this.#deps.listLiveNodes().catch(() => null);
    this.#isListingLiveNodes = false;
    if (!this.#isStopped) this.#remote.dropEnded(liveNodes);
  }
}
