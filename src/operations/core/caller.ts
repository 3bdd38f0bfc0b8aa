import { KlatchError } from '../../errors.ts';
import type { AccountId, ConversationId, LogEpoch, Rev, Seq, SessionOrTokenId } from '../../model/ids.ts';
import type { InstallationRole } from '../../model/roles.ts';
import type { Scope } from '../../model/scopes.ts';
import type { SourceKey } from '../../model/source-key.ts';
import type { KlatchCookie } from './session-cookie.ts';

/** The administrator on the server's own machine, who calls through the control socket. */
interface ControlSocketCaller {
  readonly kind: 'system';
}

/** A caller without a session. */
export interface AnonymousCaller {
  readonly kind: 'anonymous';
  /**
   * The network that the request comes from. Behind a trusted proxy, it is the network of the client and not of the
   * proxy.
   */
  readonly source: SourceKey;
  readonly live: LiveSession | null;
}

/** A person or a bot, with the session or token that it calls with. */
export interface AccountCaller {
  readonly kind: 'account';
  readonly accountId: AccountId;
  readonly accountKind: 'user' | 'bot';
  readonly role: InstallationRole;
  readonly nick: string;
  readonly name: string;
  readonly sessionId: SessionOrTokenId;
  /** The time at which the session expires; null: never. */
  readonly expiresAt: Date | null;
  /** Whether the session is an app password. */
  readonly isAppPassword: boolean;
  /** Whether each use of the session moves `expiresAt`. */
  readonly isRenewedByUse: boolean;
  /** The scopes of a bot's token; null: a person's session, to which scopes do not apply. */
  readonly scopes: ReadonlySet<Scope> | null;
  readonly source: SourceKey;
  readonly live: LiveSession | null;
}

/** The points from which a client follows its conversations. */
export interface SubscriptionStartPoints {
  /**
   * By conversation: the rev of the last change that the client has. The client gets the changes after it, in order.
   */
  readonly since: ReadonlyMap<ConversationId, Rev>;
  /**
   * The first change that the client gets of every other conversation: the next one (`now`), or the first one
   * (`start`).
   */
  readonly default: 'now' | 'start';
}

/** A conversation that a connection follows. The connection gets its changes after `rev`. */
export interface SubscribedConversation {
  readonly conversationId: ConversationId;
  readonly rev: Rev;
  /** The first seq of the conversation: retention removed the messages before it. */
  readonly firstSeq: Seq;
  /**
   * The rev at which the current log epoch begins: a client that has changes of the previous epoch drops those with a
   * greater rev.
   */
  readonly epochRev: Rev;
}

/** A connection follows at most this many conversations. */
export const MAX_SUBSCRIBED_CONVERSATIONS = 20_000;

/** The conversations that a connection follows. */
export interface SubscribeResult {
  readonly conversations: readonly SubscribedConversation[];
  /** False: the caller is in more conversations than one connection follows. */
  readonly isComplete: boolean;
  /** The current log epoch of the installation. */
  readonly currentEpoch: LogEpoch;
  readonly previousEpoch: LogEpoch;
}

/** A live connection as operations see it; the connection itself is `live/session.ts`. */
export interface LiveSession {
  /** The cookies of Klatch servers in the handshake, if a page of `http.base-uri` connected; otherwise empty. */
  readonly handshakeCookies: readonly KlatchCookie[];
  /**
   * Makes the connection act as this caller from now on. Throws `quota_exceeded` if the account has too many
   * connections.
   */
  onAuthenticated(caller: AccountCaller): void;
  /** Called for an invalid token. Resolves when the refusal may be sent: late, for a network that tries many tokens. */
  onTokenRejected(): Promise<void>;
  /**
   * Begins to send the changes of all conversations that the caller is in, and of those that it joins later. May be
   * called once for a connection. Resolves to the conversations, each with the rev after which its changes are sent.
   * The first change is sent after the answer.
   */
  subscribe(request: SubscriptionStartPoints): Promise<SubscribeResult>;
  /** Tells the connection whether the client is in the foreground. A new connection counts as in the foreground. */
  setForeground(isForeground: boolean): void;
}

export type Caller = ControlSocketCaller | AnonymousCaller | AccountCaller;

/** Whether the caller may do what the installation's administrators may. */
export function isAdministrator(caller: Caller): boolean {
  return caller.kind === 'system' || (caller.kind === 'account' && caller.role === 'admin' && caller.scopes === null);
}

/** The network whose limits a call counts for; null: the call comes through the control socket, which has no limits. */
export function callerSource(caller: Caller): SourceKey | null {
  return caller.kind === 'system' ? null : caller.source;
}

/** The calling account. Throws `forbidden` for any other caller. */
export function requireAccount(caller: Caller): AccountCaller {
  if (caller.kind === 'account') return caller;
  throw new KlatchError('forbidden', { sentence: 'Only an account can do this: call it with a session token' });
}
