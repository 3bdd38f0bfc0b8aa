import type { AccountId, SessionOrTokenId } from '../../model/ids.ts';
import type { InstallationRole } from '../../model/roles.ts';
import type { Scope } from '../../model/scopes.ts';
import type { Sql, Transaction } from '../db/connection.ts';

/** A valid session, and its account. */
export interface FoundSession {
  readonly id: SessionOrTokenId;
  readonly accountId: AccountId;
  readonly accountKind: 'user' | 'bot';
  readonly role: InstallationRole;
  readonly nick: string;
  readonly name: string;
  readonly scopes: readonly Scope[] | null;
  readonly isAppPassword: boolean;
  readonly expiresAt: Date | null;
  /** Whether each use of the session moves `expiresAt`. */
  readonly isRenewedByUse: boolean;
}

interface NewSessionOrToken {
  readonly accountId: AccountId;
  /** SHA-256 (hex) of the token. */
  readonly tokenHash: string;
  readonly label: string;
  readonly scopes: readonly Scope[] | null;
  readonly expiresAt: Date | null;
}

/**
 * A session ends after this many seconds without use, or after this many in total; null: it lasts until it is ended
 * explicitly.
 */
export type SessionLifetime = { readonly idleTimeoutS: number } | { readonly expiresInS: number } | null;

export async function insertSessionOrToken(
  tx: Sql | Transaction,
  session: NewSessionOrToken,
): Promise<SessionOrTokenId> {
  const { accountId, tokenHash, label, scopes, expiresAt } = session;
  const [row] = await tx<{ id: SessionOrTokenId }[]>`
    insert into session (account_id, token_hash, label, scopes, expires_at)
    values (${accountId}, ${tokenHash}, ${label}, ${scopes === null ? null : [...scopes]}::text[], ${expiresAt})
    returning id`;
  return row!.id;
}

interface NewAppPassword {
  readonly accountId: AccountId;
  /** SHA-256 (hex) of the token. */
  readonly tokenHash: string;
  readonly label: string;
  /** The lifetime in seconds; null: the app password is valid until somebody ends it. */
  readonly expiresInS: number | null;
}

export async function insertAppPassword(
  tx: Transaction,
  { accountId, tokenHash, label, expiresInS }: NewAppPassword,
): Promise<{ readonly id: SessionOrTokenId; readonly expiresAt: Date | null }> {
  const [row] = await tx<{ id: SessionOrTokenId; expiresAt: Date | null }[]>`
    insert into session (account_id, token_hash, label, expires_at, is_app_password)
    values (${accountId}, ${tokenHash}, ${label}, now() + ${expiresInS}::int * interval '1 second', true)
    returning id, expires_at as "expiresAt"`;
  return row!;
}

/** Whether a session is valid. If so, it cannot end before the transaction does. */
export async function lockSession(tx: Transaction, id: SessionOrTokenId): Promise<boolean> {
  const rows = await tx`
    select from session where id = ${id} and (expires_at is null or expires_at > now()) for key share`;
  return rows.length > 0;
}

/** Sets the lifetime of a session that was just inserted. */
export async function setLifetime(
  tx: Transaction,
  id: SessionOrTokenId,
  lifetime: NonNullable<SessionLifetime>,
): Promise<void> {
  const [idleTimeoutS, seconds] =
    'idleTimeoutS' in lifetime ? [lifetime.idleTimeoutS, lifetime.idleTimeoutS] : [null, lifetime.expiresInS];
  await tx`
    update session set idle_timeout_s = ${idleTimeoutS}, expires_at = now() + ${seconds} * interval '1 second'
    where id = ${id}`;
}

/**
 * Counts a live connection as a use of its session, if the session ends after a time without use. It writes this at
 * most once a day, since the idle time-outs are far longer.
 */
export async function touchIdleSessions(sql: Sql, ids: readonly SessionOrTokenId[]): Promise<void> {
  await sql`
    update session set last_used_at = now(), expires_at = now() + idle_timeout_s * interval '1 second'
    where id = any(${[...ids]}::bigint[]) and idle_timeout_s is not null and expires_at > now()
      and last_used_at < now() - interval '1 day'`;
}

/**
 * The session of a token, or null if it has expired or its account is deactivated. The session counts as used now. The
 * statement writes the use only if the last one is more than 5 minutes old, so most look-ups write nothing. The write
 * extends a session with an idle time-out by its full time-out.
 */
export async function findAndTouchSession(sql: Sql, tokenHash: string): Promise<FoundSession | null> {
  const [row] = await sql<FoundSession[]>`
    with found as (
      select s.id, a.id as account_id, a.kind, a.role, a.nick, a.name, s.scopes, s.is_app_password, s.expires_at,
        s.last_used_at,
        s.last_used_at < now() - interval '5 minutes' as is_touched,
        now() + s.idle_timeout_s * interval '1 second' as extended_to, s.idle_timeout_s is not null as is_renewed
      from session s join account a on a.id = s.account_id
      where s.token_hash = ${tokenHash} and a.deactivated_at is null and (s.expires_at is null or s.expires_at > now())
    ), used as (
      update session set last_used_at = now(), expires_at = coalesce(extended_to, session.expires_at)
      from found where session.id = found.id and is_touched
    )
    select id, account_id as "accountId", kind as "accountKind", role, nick, name, to_json(scopes) as scopes,
      is_app_password as "isAppPassword", is_renewed as "isRenewedByUse",
      case when is_touched then coalesce(extended_to, expires_at) else expires_at end as "expiresAt"
    from found`;
  return row ?? null;
}

/**
 * Ends the sessions of a person except `keep` of them: the session `newest` and those that were used last. Returns the
 * ended ones. The caller holds the account's lock: else two parallel calls would not see each other's new session, and
 * leave more than `keep`.
 */
export async function endLeastRecentlyUsedSessions(
  tx: Transaction,
  { accountId, newest, keep }: { accountId: AccountId; newest: SessionOrTokenId; keep: number },
): Promise<SessionOrTokenId[]> {
  const rows = await tx<{ id: SessionOrTokenId }[]>`
    delete from session where id in (
      select id from session where account_id = ${accountId} and id <> ${newest}
      order by last_used_at desc, id desc offset ${keep - 1})
    returning id`;
  return rows.map(({ id }) => id);
}
