import type { PresenceUpdate } from '../bus/bus.ts';
import type { AccountId } from '../model/ids.ts';

/** The most other nodes whose presence is kept, which bounds the memory. A cluster has only a few nodes. */
const MAX_REMOTE_NODES = 1_000;
/** A node that does not send its snapshot is asked for it again after a random time from this to twice this. */
const SNAPSHOT_REQUEST_INTERVAL_MS = 2_000;
/** A node that sent something within this time is running, even if its row in the database has expired. */
const HEARD_RECENTLY_MS = 12_000;
/** A node that has sent nothing for this time is dropped, even when its row in the database cannot be read. */
export const MAX_NODE_SILENCE_MS = 120_000;
/**
 * A silent node is dropped when its row in the database was missing in this many checks one after the other. After an
 * outage of the database, all rows have expired for a moment.
 */
const MISSING_LISTINGS_BEFORE_DROP = 2;

/** The online accounts of another node. */
interface RemoteNode {
  /** The number of the last change that `accounts` includes. */
  lastChangeNumber: number;
  /** False: changes were missed, and a snapshot is needed. */
  isCurrent: boolean;
  accounts: Set<AccountId>;
  /** The snapshot whose parts are arriving; null: no part has arrived. */
  partial: { readonly number: number; readonly accounts: Set<AccountId>; nextPart: number } | null;
  requestDueMs: number;
  lastHeardAtMs: number;
  listingsMissedInRow: number;
}

/** The accounts online on other nodes: a numbered set for each node, dropped as a whole when the node stops. */
export class RemotePresence {
  readonly #onChange: (accountId: AccountId, online: boolean) => void;
  readonly #nodes = new Map<string, RemoteNode>();
  /** For each account that is online on other nodes: the number of these nodes. */
  readonly #nodeCountByAccount = new Map<AccountId, number>();

  /** `onChange`: called when an account comes online on the first other node, or goes offline on the last one. */
  constructor(onChange: (accountId: AccountId, online: boolean) => void) {
    this.#onChange = onChange;
  }

  get accounts(): Iterable<AccountId> {
    return this.#nodeCountByAccount.keys();
  }

  get nodeCount(): number {
    return this.#nodes.size;
  }

  has(accountId: AccountId): boolean {
    return this.#nodeCountByAccount.has(accountId);
  }

  /** Applies an update from another node. */
  onUpdate(nodeName: string, update: Exclude<PresenceUpdate, { kind: 'request' }>): void {
    if (update.kind === 'leave') {
      this.#drop(nodeName);
      return;
    }
    const node = this.#nodes.get(nodeName) ?? this.#add(nodeName);
    if (node === null) return;
    node.lastHeardAtMs = performance.now();
    node.listingsMissedInRow = 0;
    if (update.kind === 'snapshot') this.#onSnapshotPart(node, update);
    else if (update.kind === 'position') node.isCurrent &&= node.lastChangeNumber === update.changeNumber;
    else this.#onAccountChange(node, update);
  }

  /**
   * Returns the nodes to ask for their snapshots now. A node that sends none is returned again later, after
   * `SNAPSHOT_REQUEST_INTERVAL_MS` at the earliest.
   */
  takeDueRequests(): string[] {
    const nowMs = performance.now();
    const dueNodes = [...this.#nodes].filter(([, node]) => !node.isCurrent && node.requestDueMs <= nowMs);
    // The delay is random: all nodes receive a snapshot, so the first request makes most others unnecessary.
    for (const [, node] of dueNodes) node.requestDueMs = nowMs + SNAPSHOT_REQUEST_INTERVAL_MS * (1 + Math.random());
    return dueNodes.map(([name]) => name);
  }

  /**
   * Drops the nodes that have stopped. `liveNodes`: the nodes with a row in the database; null: the rows could not be
   * read.
   */
  dropEnded(liveNodes: readonly string[] | null): void {
    const nowMs = performance.now();
    for (const [name, node] of this.#nodes) {
      if (liveNodes !== null) node.listingsMissedInRow = liveNodes.includes(name) ? 0 : node.listingsMissedInRow + 1;
      const silentMs = nowMs - node.lastHeardAtMs;
      const hasEnded = node.listingsMissedInRow >= MISSING_LISTINGS_BEFORE_DROP && silentMs > HEARD_RECENTLY_MS;
      if (hasEnded || silentMs > MAX_NODE_SILENCE_MS) this.#drop(name);
    }
  }

  #onAccountChange(
    node: RemoteNode,
    { changeNumber: number, accountId, online }: Extract<PresenceUpdate, { kind: 'change' }>,
  ): void {
    if (number !== node.lastChangeNumber + 1) node.isCurrent = false;
    if (!node.isCurrent) return;
    node.lastChangeNumber = number;
    if (online) this.#addAccount(node, accountId);
    else this.#removeAccount(node, accountId);
  }

  #onSnapshotPart(node: RemoteNode, update: Extract<PresenceUpdate, { kind: 'snapshot' }>): void {
    const { changeNumber: number, partNumber: part, partCount: parts, onlineAccountsInPart: accounts } = update;
    if (part === 1) node.partial = { number, accounts: new Set(), nextPart: 1 };
    const { partial } = node;
    if (partial?.number !== number || partial.nextPart !== part) {
      // A part of the snapshot was lost: the next request asks for all parts again.
      node.partial = null;
      return;
    }
    partial.nextPart += 1;
    for (const id of accounts) partial.accounts.add(id);
    if (part < parts) return;
    node.partial = null;
    // Another node requested this snapshot, which holds nothing new.
    if (node.isCurrent && node.lastChangeNumber === number) return;
    for (const id of node.accounts) if (!partial.accounts.has(id)) this.#removeAccount(node, id);
    for (const id of partial.accounts) this.#addAccount(node, id);
    node.lastChangeNumber = number;
    node.isCurrent = true;
  }

  #add(nodeName: string): RemoteNode | null {
    if (this.#nodes.size >= MAX_REMOTE_NODES) return null;
    const node = {
      lastChangeNumber: Number.NaN,
      isCurrent: false,
      accounts: new Set<AccountId>(),
      partial: null,
      requestDueMs: 0,
      lastHeardAtMs: 0,
      listingsMissedInRow: 0,
    };
    this.#nodes.set(nodeName, node);
    return node;
  }

  #drop(nodeName: string): void {
    const node = this.#nodes.get(nodeName);
    if (node === undefined) return;
    this.#nodes.delete(nodeName);
    for (const id of node.accounts) this.#removeAccount(node, id);
  }

  #addAccount(node: RemoteNode, accountId: AccountId): void {
    if (node.accounts.has(accountId)) return;
    node.accounts.add(accountId);
    const nodesBefore = this.#nodeCountByAccount.get(accountId) ?? 0;
    this.#nodeCountByAccount.set(accountId, nodesBefore + 1);
    if (nodesBefore === 0) this.#onChange(accountId, true);
  }

  #removeAccount(node: RemoteNode, accountId: AccountId): void {
    if (!node.accounts.delete(accountId)) return;
    const remainingNodes = (this.#nodeCountByAccount.get(accountId) ?? 0) - 1;
    if (remainingNodes > 0) {
      this.#nodeCountByAccount.set(accountId, remainingNodes);
      return;
    }
    this.#nodeCountByAccount.delete(accountId);
    this.#onChange(accountId, false);
  }
}
