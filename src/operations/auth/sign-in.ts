import { createHash, randomBytes } from 'node:crypto';
import * as z from 'zod';
import { KlatchError } from '../../errors.ts';
import type { AccountId, SessionOrTokenId } from '../../model/ids.ts';
import { lockActiveAccount, type UserOrBotAccount } from '../../storage/accounts/accounts.ts';
import type { Transaction } from '../../storage/db/connection.ts';
import {
  endLeastRecentlyUsedSessions,
  insertSessionOrToken,
  setLifetime,
  type SessionLifetime,
} from '../../storage/accounts/sessions.ts';
import { installationRoleSchema } from '../core/schemas.ts';
import type { Services } from '../core/services.ts';
import { newSessionToken } from '../core/session-cache.ts';

const TOKEN_BYTES = 32;
const LINK_TOKEN_PREFIX = 'kll_';
const LINK_TOKEN_PATTERN = /^kll_[A-Za-z0-9_-]{43}$/;
/** The name of a session whose client gives it none. */
const DEFAULT_LABEL = 'a client';

/** A name for a session, for people: a device, a program. */
export const sessionOrDeviceLabelSchema = z
  .string()
  .trim()
  .min(1, 'must not be empty')
  .max(100, 'has at most 100 characters')
  .regex(/^\P{Cc}*$/u, 'holds no control characters');

const MIN_EXPIRES_IN_S = 60;
const MAX_EXPIRES_IN_S = 10 * 365 * 24 * 60 * 60;

/** Seconds after which a session ends, even while it is used. */
export const expiresInSchema = z.int().min(MIN_EXPIRES_IN_S).max(MAX_EXPIRES_IN_S);

/** `byDefault`: the lifetime of a session that asks for none of its own. */
export function chooseLifetime(expiresInS: number | undefined, byDefault: SessionLifetime): SessionLifetime {
  return expiresInS === undefined ? byDefault : { expiresInS };
}

/** An account as its owner sees it. */
const ownAccountSchema = z.object({
  id: z.int(),
  kind: z.enum(['user', 'bot']),
  nick: z.string(),
  name: z.string(),
  role: installationRoleSchema,
});

/** The answer to a successful sign-in; the token is shown only here. */
export const signedInSchema = z.object({
  status: z.literal('signed_in'),
  /** The session's token, for `Authorization: Bearer` and `live.authenticate`. */
  token: z.string(),
  session: z.int(),
  account: ownAccountSchema,
});
export type SignedIn = z.infer<typeof signedInSchema>;

/** A secret identifier for a sign-in transaction: 256 random bits. */
export function newOpaqueToken(): string {
  return randomBytes(TOKEN_BYTES).toString('base64url');
}

/** SHA-256 (hex), as the database stores secret identifiers. */
export function hashOpaqueToken(name: string): string {
  return createHash('sha256').update(name).digest('hex');
}

/** The token of a new sign-in link. */
export function newLinkToken(): string {
  return LINK_TOKEN_PREFIX + newOpaqueToken();
}

/** A sign-in link for people. The token follows the #, and browsers send that part to no server and no log. */
export function signInLinkFor({ config }: Pick<Services, 'config'>, token: string): string {
  return `${config.http.baseUri}/v1/sign-in#${token}`;
}

/**
 * The same for the browser client, which signs in without a click on the server's machine; null when it is disabled.
 */
export function browserLinkFor({ config }: Pick<Services, 'config'>, token: string): string | null {
  return config.web.webClientEnabled ? `${config.http.baseUri}/#${token}` : null;
}

/** The token of a whole link, or the text itself if it is a token; null for any other text. */
export function parseLinkToken(text: string): string | null {
  const token = text.trim().split('#').at(-1)!;
  return LINK_TOKEN_PATTERN.test(token) ? token : null;
}

/** The name of a person's new session, and its lifetime. */
export interface SessionChoice {
  readonly label: string | undefined;
  readonly lifetime: SessionLifetime;
}

/** A new session, and the sessions that ended to make room for it. */
export interface OpenedSession {
  readonly response: SignedIn;
  readonly ended: readonly SessionOrTokenId[];
}

/**
 * Creates a person's session within the transaction that proved the identity; null for a deactivated account or a bot.
 * The caller publishes the ended sessions after its commit.
 */
export async function openSession(
  tx: Transaction,
  { accountId, label = DEFAULT_LABEL, lifetime }: SessionChoice & { readonly accountId: AccountId },
  sessionsPerUser: number,
): Promise<OpenedSession | null> {
  const account = await lockActiveAccount(tx, accountId);
  if (account === null || account.kind === 'bot') return null;
  const { token, hash: tokenHash } = newSessionToken('user');
  const session = await insertSessionOrToken(tx, { accountId, tokenHash, label, scopes: null, expiresAt: null });
  if (lifetime !== null) await setLifetime(tx, session, lifetime);
  const ended = await endLeastRecentlyUsedSessions(tx, { accountId, newest: session, keep: sessionsPerUser });
  return { response: { status: 'signed_in', token, session, account: serializeOwnAccount(account) }, ended };
}

/** Publishes the sessions that a new one ended, and returns the answer. */
export function publishEndedSurplusSessions(
  { bus }: Pick<Services, 'bus'>,
  { response: answer, ended }: OpenedSession,
): SignedIn {
  if (ended.length > 0) bus.publish('sessionsEnded', ended);
  return answer;
}

function serializeOwnAccount({ id, kind, nick, name, role }: UserOrBotAccount): z.infer<typeof ownAccountSchema> {
  return { id, kind, nick, name, role };
}

/** The error for a caller that proved an address of a deactivated account. */
export function accountDeactivated(): KlatchError {
  return new KlatchError('forbidden', { sentence: 'This account is deactivated: ask the administrator' });
}
