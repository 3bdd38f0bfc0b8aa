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
import { accountField, accountKindField, installationRoleSchema, nameField, nickField } from '../core/schemas.ts';
import type { Services } from '../core/services.ts';
import { newSessionToken } from '../core/session-cache.ts';

const TOKEN_BYTES = 32;
const LINK_TOKEN_PREFIX = 'kll_';
const LINK_TOKEN_PATTERN = /^kll_[A-Za-z0-9_-]{43}$/;
/** The label of a session whose client gives no label. */
const DEFAULT_SESSION_LABEL = 'a client';

/** The label of a session or device, for people to read: the name of a device or program. */
export const sessionOrDeviceLabelSchema = z
  .string()
  .trim()
  .min(1, 'must not be empty')
  .max(100, 'has at most 100 characters')
  .regex(/^\P{Cc}*$/u, 'holds no control characters');

const MIN_EXPIRES_IN_S = 60;
const MAX_EXPIRES_IN_S = 10 * 365 * 24 * 60 * 60;

/** The seconds after which a session ends, even if it is in use. */
export const expiresInSchema = z.int().min(MIN_EXPIRES_IN_S).max(MAX_EXPIRES_IN_S);

/** The lifetime that a request asks for; `byDefault` if it asks for none. */
export function chooseLifetime(expiresInS: number | undefined, byDefault: SessionLifetime): SessionLifetime {
  return expiresInS === undefined ? byDefault : { expiresInS };
}

/** An account as its owner sees it. */
const ownAccountSchema = z.object({
  id: accountField,
  kind: accountKindField,
  nick: nickField,
  name: nameField,
  role: installationRoleSchema,
});

/** The answer to a sign-in. No other answer shows the token. */
export const signedInSchema = z.object({
  status: z.literal('signed_in').describe('The caller is signed in.'),
  token: z.string().describe("The session's, for `Authorization: Bearer` and `live.authenticate`."),
  session: z.int().describe("The session's number."),
  account: ownAccountSchema.describe('The account of the session.'),
});
export type SignedIn = z.infer<typeof signedInSchema>;

/** A new secret of 256 random bits: the name of a sign-in transaction, or a part of a link's token. */
export function newOpaqueToken(): string {
  return randomBytes(TOKEN_BYTES).toString('base64url');
}

/** SHA-256 (hex) of a secret name or link token, as the database stores it. */
export function hashOpaqueToken(token: string): string {
  return createHash('sha256').update(token).digest('hex');
}

export function newLinkToken(): string {
  return LINK_TOKEN_PREFIX + newOpaqueToken();
}

/**
 * A sign-in link that people can pass on. The token is behind the #: browsers do not send this part to servers, so no
 * log has it.
 */
export function signInLinkFor({ config }: Pick<Services, 'config'>, token: string): string {
  return `${config.http.baseUri}/v1/sign-in#${token}`;
}

/**
 * The sign-in link to the browser client, for use on the server's machine: it signs in without a click. Null: the
 * server has no browser client.
 */
export function browserLinkFor({ config }: Pick<Services, 'config'>, token: string): string | null {
  return config.web.webClientEnabled ? `${config.http.baseUri}/#${token}` : null;
}

/** The token of a sign-in link. `text` is the link or the token itself; null: it holds no such token. */
export function parseLinkToken(text: string): string | null {
  const token = text.trim().split('#').at(-1)!;
  return LINK_TOKEN_PATTERN.test(token) ? token : null;
}

/** Label and lifetime of a person's new session. */
export interface NewSessionOptions {
  readonly label: string | undefined;
  readonly lifetime: SessionLifetime;
}

/** A new session, and the older sessions that were ended since the account had too many. */
export interface OpenedSession {
  readonly response: SignedIn;
  readonly endedSessionIds: readonly SessionOrTokenId[];
}

/**
 * Makes a session within the transaction that proved who the person is. Null: the account is deactivated or a bot's.
 * After the commit, the caller publishes the ended sessions with `publishEndedSurplusSessions`.
 */
export async function openSession(
  tx: Transaction,
  { accountId, label = DEFAULT_SESSION_LABEL, lifetime }: NewSessionOptions & { readonly accountId: AccountId },
  sessionsPerUser: number,
): Promise<OpenedSession | null> {
  const account = await lockActiveAccount(tx, accountId);
  if (account === null || account.kind === 'bot') return null;
  const { token, hash: tokenHash } = newSessionToken('user');
  const sessionId = await insertSessionOrToken(tx, { accountId, tokenHash, label, scopes: null, expiresAt: null });
  if (lifetime !== null) await setLifetime(tx, sessionId, lifetime);
  const endedSessionIds = await endLeastRecentlyUsedSessions(tx, {
    accountId,
    newest: sessionId,
    keep: sessionsPerUser,
  });
  return {
    response: { status: 'signed_in', token, session: sessionId, account: serializeOwnAccount(account) },
    endedSessionIds,
  };
}

/** Publishes the sessions that a new session ended, and returns the answer to the sign-in. */
export function publishEndedSurplusSessions(
  { bus }: Pick<Services, 'bus'>,
  { response: answer, endedSessionIds: ended }: OpenedSession,
): SignedIn {
  if (ended.length > 0) bus.publish('sessionsEnded', ended);
  return answer;
}

function serializeOwnAccount({ id, kind, nick, name, role }: UserOrBotAccount): z.infer<typeof ownAccountSchema> {
  return { id, kind, nick, name, role };
}

/** The error for a person who proved an address of a deactivated account. */
export function accountDeactivated(): KlatchError {
  return new KlatchError('forbidden', { sentence: 'This account is deactivated: ask the administrator' });
}
