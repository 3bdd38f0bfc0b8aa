import type { Account, Change } from './shapes.ts';

/** The events that a follower delivers, one after the other. Each change of a conversation comes once, in order. */
export type ChatEvent =
  | { readonly type: 'change'; readonly conversation: number; readonly change: Change }
  /** The account joined a conversation: its changes follow from here. */
  | { readonly type: 'joined'; readonly conversation: number }
  /** The account left the conversation: no event of it follows. */
  | { readonly type: 'left'; readonly conversation: number }
  /**
   * The server lost changes of a conversation that this client had received, as after a restored backup. Changes after
   * `rev` no longer exist: their messages have other texts now, or were never sent. The follower continues after `rev`.
   */
  | { readonly type: 'reset'; readonly conversation: number; readonly rev: number }
  | { readonly type: 'connected'; readonly account: Account }
  /** Changes since the last connection follow; `isSubscribedToAll`: of all conversations that the account is in. */
  | { readonly type: 'following'; readonly conversations: number; readonly isSubscribedToAll: boolean }
  | { readonly type: 'disconnected'; readonly reason: string; readonly retryInMs: number }
  /** All other notifications: read positions, typing, presence, and methods that this client does not know. */
  | { readonly type: 'said'; readonly method: string; readonly params: unknown };

/** Handles one event. The client waits for the listener before it passes the next event; an error stops the client. */
export type ChatListener = (event: ChatEvent) => Promise<void> | void;
