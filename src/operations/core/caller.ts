import { KlatchError } from '../../errors.ts';
import type { AccountId, ConversationId, LogEpoch, Rev, Seq, SessionOrTokenId } from '../../model/ids.ts';
import type { InstallationRole } from '../../model/roles.ts';
import type { Scope } from '../../model/scopes.ts';
import type { SourceKey } from '../../model/source-key.ts';
import type { KlatchCookie } from './session-cookie.ts';

/** The administrator on the server's own machine, through the control socket. */
interface ControlSocketCaller {
  readonly kind: 'system';
}

/** A caller without a session. */
export interface AnonymousCaller {
  readonly kind: 'anonymous';
  /** The network that the request comes from; behind trusted proxies, that of the client. */
  readonly source: SourceKey;
  readonly live: LiveSession | null;
}

/** A person, or a bot. */
export interface AccountCaller {
  readonly kind: 'account';
  readonly accountId: AccountId;
  readonly accountKind: 'user' | 'bot';
  readonly role: InstallationRole;
  readonly nick: string;
  readonly name: string;
  readonly sessionId: SessionOrTokenId;
  /** When the session expires; null: never. */
  readonly expiresAt: Date | null;
  /** Whether the session is an app password. */
  readonly isAppPassword: boolean;
  /** Whether each use of the session moves `expiresAt`. */
  readonly isRenewedByUse: boolean;
  /** Null: a person's session, which has every right. */
  readonly scopes: ReadonlySet<Scope> | null;
  readonly source: SourceKey;
  readonly live: LiveSession | null;
}

/** The changes that a client has of its conversations when it begins to follow them. */
export interface SubscriptionStartPoints {
  /** The last change that the client has of each of these conversations. It gets the changes after it, in order. */
  readonly since: ReadonlyMap<ConversationId, Rev>;
  /** Where to begin in conversations that `since` does not name: with the next change, or with the first one. */
  readonly default: 'now' | 'start';
}

/** A followed conversation. Its stream begins after the change `rev`. */
export interface SubscribedConversation {
  readonly conversationId: ConversationId;
  readonly rev: Rev;
  /** Messages before it were removed by a retention rule. */
  readonly firstSeq: Seq;
  /** A client that knows the previous epoch drops changes with a greater rev. */
  readonly epochRev: Rev;
}

/** At most so many conversations are followed by one connection. */
export const MAX_SUBSCRIBED_CONVERSATIONS = 20_000;

/** The conversations that a connection follows. */
export interface SubscribeResult {
  readonly conversations: readonly SubscribedConversation[];
  /** False: the caller is in more conversations than one connection follows. */
  readonly isComplete: boolean;
  /** The installation's epoch of the log. */
  readonly currentEpoch: LogEpoch;
  readonly previousEpoch: LogEpoch;
}

/** A live connection as operations see it; the connection itself is `live/session.ts`. */
export interface LiveSession {
  /** Cookies of Klatch servers that a page of `http.base-uri` brought along when it connected; else none. */
  readonly handshakeCookies: readonly KlatchCookie[];
  /** From now on the connection acts as this caller. Throws `quota_exceeded` past the connections of one account. */
  onAuthenticated(caller: AccountCaller): void;
  /** Called for a token that is not valid: resolves when the refusal may be sent. */
  onTokenRejected(): Promise<void>;
  /**
   * Begins the stream of changes of all conversations that the caller is in, and of those that it joins later. Once for
   * a connection. Resolves with the start of each stream; the first change is sent after the answer.
   */
  subscribe(request: SubscriptionStartPoints): Promise<SubscribeResult>;
  /** Says whether somebody looks at the client from now on. A new connection is in the foreground. */
  setForeground(isForeground: boolean): void;
}

/** The caller of an operation. */
export type Caller = ControlSocketCaller | AnonymousCaller | AccountCaller;

/** Whether the caller may do what the installation's administrators may. */
export function isAdministrator(caller: Caller): boolean {
  return caller.kind === 'system' || (caller.kind === 'account' && caller.role === 'admin' && caller.scopes === null);
}

/** The network that a call counts for; null on the server's own machine, which nothing bounds. */
export function callerSource(caller: Caller): SourceKey | null {
  return caller.kind === 'system' ? null : caller.source;
}

/** The account that calls. Throws `forbidden` for the administrator's command line, which is nobody's account. */
export function requireAccount(caller: Caller): AccountCaller {
  if (caller.kind === 'account') return caller;
  throw new KlatchError('forbidden', { sentence: 'Only an account can do this: call it with a session token' });
}
