import type { Account, Change } from './shapes.ts';

/** What a follower hears, one after the other. Each change of a conversation comes once, in order. */
export type ChatEvent =
  | { readonly type: 'change'; readonly conversation: number; readonly change: Change }
  /** The account came into a conversation: its changes are heard from here on. */
  | { readonly type: 'joined'; readonly conversation: number }
  /** The account is no longer in the conversation: no event of it follows. */
  | { readonly type: 'left'; readonly conversation: number }
  /**
   * The server lost changes of a conversation that were heard, as after a restored backup. What was heard behind `rev` no
   * longer counts: its messages have other texts now, or are none. It goes on from there.
   */
  | { readonly type: 'reset'; readonly conversation: number; readonly rev: number }
  | { readonly type: 'connected'; readonly account: Account }
  /** The changes that came meanwhile have begun to come; `complete`: of all conversations that the account is in. */
  | { readonly type: 'following'; readonly conversations: number; readonly isSubscribedToAll: boolean }
  | { readonly type: 'disconnected'; readonly reason: string; readonly retryInMs: number }
  /** Whatever else the server says: read positions, typing, presence, and what this client does not know. */
  | { readonly type: 'said'; readonly method: string; readonly params: unknown };

/** Hears events. The next one waits until it has resolved; an error ends the client. */
export type ChatListener = (event: ChatEvent) => Promise<void> | void;
