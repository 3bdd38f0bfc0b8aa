import type { Account, Change } from './shapes.ts';

/** The events that a follower delivers, one after the other. Each change of a conversation comes once, in order. */
export type ChatEvent =
  | { readonly type: 'change'; readonly conversation: number; readonly change: Change }
  /** The account joined the conversation: the changes of the conversation come after this event. */
  | { readonly type: 'joined'; readonly conversation: number }
  /** The account left the conversation: no more events of it follow. */
  | { readonly type: 'left'; readonly conversation: number }
  /**
   * The server lost changes of a conversation that this client had received, as after a restored backup. Changes after
   * `rev` no longer exist: their messages have other texts now, or were never sent. The follower continues after `rev`.
   */
  | { readonly type: 'reset'; readonly conversation: number; readonly rev: number }
  | { readonly type: 'connected'; readonly account: Account }
  /**
   * The next events are the changes since the last connection. `isSubscribedToAll` false: the account is in more
   * conversations than a client can follow.
   */
  | { readonly type: 'following'; readonly conversations: number; readonly isSubscribedToAll: boolean }
  | { readonly type: 'disconnected'; readonly reason: string; readonly retryInMs: number }
  /** All other notifications: read positions, typing, presence, and methods that this client does not know. */
  | { readonly type: 'said'; readonly method: string; readonly params: unknown };

/** Handles one event. The client waits for the listener before it passes the next event; an error stops the client. */
export type ChatListener = (event: ChatEvent) => Promise<void> | void;
