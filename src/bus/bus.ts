import type { AccountId, ConversationId, Seq, SessionOrTokenId } from '../model/ids.ts';

/** An account in a conversation. */
export interface Membership {
  readonly conversationId: ConversationId;
  readonly accountId: AccountId;
}

/** An event that is not stored; a lost one is not sent again. */
export type EphemeralEvent =
  /** The account is typing a message. */
  | ({ readonly kind: 'typing' } & Membership)
  /** The account has read the messages up to `seq`, on one of its devices. */
  | ({ readonly kind: 'read'; readonly seq: Seq } & Membership)
  /** The account has changed its notification setting of the conversation. */
  | ({ readonly kind: 'settings' } & Membership);

/**
 * An update that a node sends to others about the accounts with a session in the foreground on it. The node numbers its
 * changes consecutively, so that a node that misses one notices the gap and requests a snapshot.
 */
export type PresenceUpdate =
  | { readonly kind: 'change'; readonly changeNumber: number; readonly accountId: AccountId; readonly online: boolean }
  /** The number of the node's last change, which the node also sends as its heartbeat. */
  | { readonly kind: 'position'; readonly changeNumber: number }
  /** A part of the set of online accounts after change `changeNumber`. Parts are numbered from 1 and come in order. */
  | {
      readonly kind: 'snapshot';
      readonly changeNumber: number;
      readonly partNumber: number;
      readonly partCount: number;
      readonly onlineAccountsInPart: readonly AccountId[];
    }
  /** Requests the snapshot of the node `snapshotOfNode`; null: of every node. */
  | { readonly kind: 'request'; readonly snapshotOfNode: string | null }
  /** The node stops: no account is online on it any longer. */
  | { readonly kind: 'leave' };

/**
 * Events that announce that something was committed. A listener takes no data from an event: it reads the database from
 * its own position. So a lost or repeated event costs time at most.
 */
export interface BusEvents {
  /** Conversations with new messages, each with a seq: the newest message has this seq or a greater one. */
  messagesCommitted(conversations: ReadonlyMap<ConversationId, Seq>): void;
  /** Conversations with changes that are no new message: an edit, a deletion, a notice. They have new revs. */
  nonMessageChangesCommitted(conversations: readonly ConversationId[]): void;
  /** These accounts became members, got another role, or are members no longer: what is cached about them is stale. */
  membersChanged(memberships: readonly Membership[]): void;
  /** These sessions are no longer valid. */
  sessionsEnded(sessions: readonly SessionOrTokenId[]): void;
  /** These accounts were renamed, deactivated or given another role: what is cached about them is stale. */
  accountsChanged(accounts: readonly AccountId[]): void;
  /** A node reports which accounts are online on it. */
  presence(update: { readonly node: string; readonly update: PresenceUpdate }): void;
  /** An account is typing, has read messages, or has changed a setting. */
  ephemeral(ephemeral: EphemeralEvent): void;
  /** Conversations with new events for the reverse webhooks that ask for them. */
  hookEventsCommitted(conversations: readonly ConversationId[]): void;
  /** The reverse webhooks of these conversations were changed. */
  hooksChanged(conversations: readonly ConversationId[]): void;
  /** These integration tokens (SHA-256, hex) are no longer valid, or their posts have to be signed in another way. */
  tokensRevoked(hashes: readonly string[]): void;
  /**
   * A node released the leases of partitions, or a node without leases started: the nodes share out the leases again.
   */
  leasesNeedRebalancing(): void;
  /** Notifications of these kinds may have been lost: the listener reads the database instead. */
  resync(kinds: ReadonlySet<ReliableEvent>): void;
}

/** Events that may arrive late or twice; a lost one is followed by a resync of its kind. */
export type ReliableEvent = Exclude<keyof BusEvents, 'resync' | 'presence' | 'ephemeral'>;

export interface Bus {
  /**
   * Calls the listener for every event from now on; returns a function that unsubscribes it. Listeners must not throw.
   */
  subscribe(listener: Partial<BusEvents>): () => void;
  /** Calls the listeners of this process at once, and those of the other nodes as soon as possible. */
  publish<Event extends Exclude<keyof BusEvents, 'resync'>>(
    event: Event,
    payload: Parameters<BusEvents[Event]>[0],
  ): void;
  /**
   * Notifies one other node that the hooks of a conversation changed, and waits for its acknowledgement. True once all
   * its listeners were called, false when no acknowledgement came within `timeoutMs`, for any reason.
   */
  confirmHooksChanged(node: string, conversation: ConversationId, timeoutMs: number): Promise<boolean>;
}

/** The part of a bus that reaches this process only. */
export class LocalBus implements Bus {
  readonly #listeners = new Set<Partial<BusEvents>>();

  subscribe(listener: Partial<BusEvents>): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  publish<Event extends keyof BusEvents>(event: Event, payload: Parameters<BusEvents[Event]>[0]): void {
    for (const listener of this.#listeners) (listener[event] as ((p: typeof payload) => void) | undefined)?.(payload);
  }

  /** Always false: there is no other node that could acknowledge. */
  confirmHooksChanged(): Promise<boolean> {
    return Promise.resolve(false);
  }
}
