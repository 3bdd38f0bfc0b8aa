import type { AccountId, SessionOrTokenId } from '../../model/ids.ts';
import type { InstallationRole } from '../../model/roles.ts';
import type { Scope } from '../../model/scopes.ts';
import type { Sql, Transaction } from '../db/connection.ts';

/** A session that holds, and whose it is. */
export interface FoundSession {
  readonly id: SessionOrTokenId;
  readonly accountId: AccountId;
  readonly accountKind: 'user' | 'bot';
  readonly role: InstallationRole;
  readonly nick: string;
  readonly name: string;
  readonly scopes: readonly Scope[] | null;
  readonly expiresAt: Date | null;
}

/** A session to be made. */
interface NewSessionOrToken {
  readonly accountId: AccountId;
  /** SHA-256 (hex) of the token. */
  readonly tokenHash: string;
  readonly label: string;
  readonly scopes: readonly Scope[] | null;
  readonly expiresAt: Date | null;
}

/** After how many seconds without use, or after how many in all, a session ends; null: it lasts until somebody ends it. */
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

/** Lets a session that was just made end. */
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
 * Counts a live connection as use of the sessions that end without it: once a day, since the time-outs are longer than
 * that by far.
 */
export async function touchIdleSessions(sql: Sql, ids: readonly SessionOrTokenId[]): Promise<void> {
  await sql`
    update session set last_used_at = now(), expires_at = now() + idle_timeout_s * interval '1 second'
    where id = any(${[...ids]}::bigint[]) and idle_timeout_s is not null and expires_at > now()
      and last_used_at < now() - interval '1 day'`;
}

/**
 * The session of a token that is neither over nor of a deactivated account, or null. It counts as used now, which is
 * written down when the last time is some minutes old: most look-ups write nothing. A session that ends without use is
 * good for its whole time again then.
 */
export async function findAndTouchSession(sql: Sql, tokenHash: string): Promise<FoundSession | null> {
  const [row] = await sql<FoundSession[]>`
    with found as (
      select s.id, a.id as account_id, a.kind, a.role, a.nick, a.name, s.scopes, s.expires_at, s.last_used_at,
        s.last_used_at < now() - interval '5 minutes' as is_touched,
        now() + s.idle_timeout_s * interval '1 second' as extended_to
      from session s join account a on a.id = s.account_id
      where s.token_hash = ${tokenHash} and a.deactivated_at is null and (s.expires_at is null or s.expires_at > now())
    ), used as (
      update session set last_used_at = now(), expires_at = coalesce(extended_to, session.expires_at)
      from found where session.id = found.id and is_touched
    )
    select id, account_id as "accountId", kind as "accountKind", role, nick, name, to_json(scopes) as scopes,
      case when is_touched then coalesce(extended_to, expires_at) else expires_at end as "expiresAt"
    from found`;
  return row ?? null;
}

/**
 * Ends the sessions of a person beyond the new one and those used last, `keep` in all, and says which. The account is
 * locked, so that two at once do not each spare what the other one made.
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
