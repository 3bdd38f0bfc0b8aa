import type { AccountId, SessionOrTokenId } from '../../model/ids.ts';
import type { Scope } from '../../model/scopes.ts';
import type { Sql, Transaction } from '../db/connection.ts';

/** A session, or a bot's token, in a list. */
export interface ListedSessionOrToken {
  readonly id: SessionOrTokenId;
  readonly label: string;
  readonly scopes: readonly Scope[] | null;
  readonly createdAt: Date;
  /** The time of the last use, up to 5 minutes too early. An open connection counts as at most one use a day. */
  readonly lastUsedAt: Date;
  readonly expiresAt: Date | null;
  readonly isAppPassword: boolean;
}

const MAX_LISTED = 1_001;

/** Valid sessions or tokens of an account, sorted by id. */
export async function listSessionsOrTokens(
  sql: Sql,
  { accountId, after, limit }: { accountId: AccountId; after: number; limit: number },
): Promise<ListedSessionOrToken[]> {
  return sql<ListedSessionOrToken[]>`
    select id, label, to_json(scopes) as scopes, created_at as "createdAt", last_used_at as "lastUsedAt",
      expires_at as "expiresAt", is_app_password as "isAppPassword"
    from session
    where account_id = ${accountId} and id > ${after} and (expires_at is null or expires_at > now())
    order by id limit ${Math.min(limit, MAX_LISTED)}`;
}

/** The number of valid sessions of an account. */
export async function countSessionsOrTokens(tx: Transaction, accountId: AccountId): Promise<number> {
  const [row] = await tx<{ count: number }[]>`
    select count(*)::int as count from session
    where account_id = ${accountId} and (expires_at is null or expires_at > now())`;
  return row!.count;
}

/** Ends one session of an account; false when the account has no such session. */
export async function endSession(sql: Sql | Transaction, accountId: AccountId, id: number): Promise<boolean> {
  const rows = await sql`delete from session where id = ${id} and account_id = ${accountId} returning id`;
  return rows.length > 0;
}

/** Ends the sessions of accounts, except the session `except`; returns the ended sessions. */
export async function endSessionsOfAccounts(
  sql: Sql | Transaction,
  accounts: readonly AccountId[],
  except: SessionOrTokenId | null = null,
): Promise<SessionOrTokenId[]> {
  const rows = await sql<{ id: SessionOrTokenId }[]>`
    delete from session where account_id = any(${[...accounts]}::bigint[]) and id is distinct from ${except}
    returning id`;
  return rows.map(({ id }) => id);
}
