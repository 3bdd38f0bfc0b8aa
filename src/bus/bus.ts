import type { AccountId, ConversationId, Seq, SessionOrTokenId } from '../model/ids.ts';

/** An account in a conversation. */
export interface Membership {
  readonly conversationId: ConversationId;
  readonly accountId: AccountId;
}

/** What passes and is nowhere kept: where it is lost, nobody misses it. */
export type EphemeralEvent =
  /** Somebody writes at this moment. */
  | ({ readonly kind: 'typing' } & Membership)
  /** The account's first live connection on a node came, or its last one went. */
  | { readonly kind: 'presence'; readonly accountId: AccountId; readonly online: boolean }
  /** The account has read up to here, on one of its devices. */
  | ({ readonly kind: 'read'; readonly seq: Seq } & Membership);

/**
 * The word that something was committed. It is a wake-up, never the truth: whoever hears it reads on from its own number
 * in the database, so a lost or repeated word costs time at most.
 */
export interface BusEvents {
  /** Conversations whose newest message has this seq, at least. */
  messagesCommitted(conversations: ReadonlyMap<ConversationId, Seq>): void;
  /** Conversations with changes that are no new message: an edit, a deletion, a notice. They have new revs. */
  nonMessageChangesCommitted(conversations: readonly ConversationId[]): void;
  /** These accounts became members, got another role, or are members no longer: what is remembered of them is old. */
  membersChanged(memberships: readonly Membership[]): void;
  /** These sessions hold no longer. */
  sessionsEnded(sessions: readonly SessionOrTokenId[]): void;
  /** These accounts were renamed, deactivated or given another role: what is remembered of them is old. */
  accountsChanged(accounts: readonly AccountId[]): void;
  /** Something passes by. */
  ephemeral(ephemeral: EphemeralEvent): void;
  /** The reverse webhooks of these conversations were changed. */
  hooksChanged(conversations: readonly ConversationId[]): void;
  /** These tokens (SHA-256, hex) no longer hold. */
  tokensRevoked(hashes: readonly string[]): void;
  /** Partitions of the lanes were given back, or a node came that has none yet. */
  leasesNeedRebalancing(): void;
  /** Words of other nodes may have been lost: look for yourself. */
  resync(): void;
}

export interface Bus {
  /** Hears everything from now on; returns how to stop. Listeners must not throw. */
  subscribe(listener: Partial<BusEvents>): () => void;
  /** Tells this process at once, and the other nodes as soon as possible. */
  publish<Event extends Exclude<keyof BusEvents, 'resync'>>(
    event: Event,
    payload: Parameters<BusEvents[Event]>[0],
  ): void;
  /**
   * Tells one other node that the hooks of a conversation were changed, and waits until it has heard: true once all its
   * listeners have, false when no answer came within `timeoutMs`, whatever the reason.
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

  publish<Event extends keyof BusEvents>(event: Event, payload?: Parameters<BusEvents[Event]>[0]): void {
    for (const listener of this.#listeners) (listener[event] as ((p: typeof payload) => void) | undefined)?.(payload);
  }

  /** There is no other node. */
  confirmHooksChanged(): Promise<boolean> {
    return Promise.resolve(false);
  }
}
