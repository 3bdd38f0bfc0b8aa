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
  /** The account has read up to here, on one of its devices. */
  | ({ readonly kind: 'read'; readonly seq: Seq } & Membership);

/**
 * What a node says of the accounts whose users look at a session of it. Changes are numbered one by one, so that
 * whoever misses one notices, and asks for a snapshot.
 */
export type PresenceUpdate =
  | { readonly kind: 'change'; readonly number: number; readonly accountId: AccountId; readonly online: boolean }
  /** The number of the last change; a sign of life besides. */
  | { readonly kind: 'position'; readonly number: number }
  /** A part of all accounts that are online behind the change `number`; parts are numbered from 1 on, and in order. */
  | {
      readonly kind: 'snapshot';
      readonly number: number;
      readonly part: number;
      readonly parts: number;
      readonly accounts: readonly AccountId[];
    }
  /** A node is to send its snapshot; null: every node. */
  | { readonly kind: 'request'; readonly from: string | null }
  /** The node ends. */
  | { readonly kind: 'leave' };

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
  /** A node says who is online on it. */
  presence(update: { readonly node: string; readonly update: PresenceUpdate }): void;
  /** Something passes by. */
  ephemeral(ephemeral: EphemeralEvent): void;
  /** Conversations with new events for the reverse webhooks that ask for them. */
  hookEventsCommitted(conversations: readonly ConversationId[]): void;
  /** The reverse webhooks of these conversations were changed. */
  hooksChanged(conversations: readonly ConversationId[]): void;
  /** These tokens (SHA-256, hex) no longer hold. */
  tokensRevoked(hashes: readonly string[]): void;
  /** Partitions of the lanes were given back, or a node came that has none yet. */
  leasesNeedRebalancing(): void;
  /** Words of these kinds from other nodes may have been lost: look for yourself. */
  resync(kinds: ReadonlySet<ReliableEvent>): void;
}

/** What may be told late or twice, and is never lost without a resync. */
export type ReliableEvent = Exclude<keyof BusEvents, 'resync' | 'presence' | 'ephemeral'>;

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

  publish<Event extends keyof BusEvents>(event: Event, payload: Parameters<BusEvents[Event]>[0]): void {
    for (const listener of this.#listeners) (listener[event] as ((p: typeof payload) => void) | undefined)?.(payload);
  }

  /** There is no other node. */
  confirmHooksChanged(): Promise<boolean> {
    return Promise.resolve(false);
  }
}
