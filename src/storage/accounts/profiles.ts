import type { AccountId } from '../../model/ids.ts';
import type { ProofAddress } from '../../model/proof-address.ts';
import type { InstallationRole } from '../../model/roles.ts';
import type { Sql, Transaction } from '../db/connection.ts';

/** An account as its owner and other accounts see it. */
export interface Profile {
  readonly id: AccountId;
  readonly kind: 'user' | 'bot';
  readonly nick: string;
  readonly name: string;
  readonly about: string | null;
  readonly role: InstallationRole;
  readonly createdAt: Date;
}

/** Changes of an account; missing fields keep their value. */
interface ProfileChange {
  readonly nick?: string | undefined;
  readonly name?: string | undefined;
  readonly about?: string | null | undefined;
  readonly role?: InstallationRole | undefined;
}

/** The active account with this id or nick (in lower case), or null. */
export async function findProfile(
  sql: Sql | Transaction,
  asked: { id: AccountId } | { nick: string },
): Promise<Profile | null> {
  const [row] = await sql<Profile[]>`
    select id, kind, nick, name, about, role, created_at as "createdAt" from account
    where ${'id' in asked ? sql`id = ${asked.id}` : sql`nick = ${asked.nick}`}
      and kind <> 'webhook' and deactivated_at is null`;
  return row ?? null;
}

/**
 * Changes an active account. Null: there is no active account with this id. Rejects with a violation of
 * `account_nick_key` if another account has the nick.
 */
export async function updateProfile(
  sql: Sql | Transaction,
  id: AccountId,
  { nick, name, about, role }: ProfileChange,
): Promise<Profile | null> {
  const [row] = await sql<Profile[]>`
    update account set nick = coalesce(${nick ?? null}::text, nick), name = coalesce(${name ?? null}::text, name),
      role = coalesce(${role ?? null}::text, role), about = ${about === undefined ? sql`about` : sql`${about}::text`}
    where id = ${id} and kind <> 'webhook' and deactivated_at is null
    returning id, kind, nick, name, about, role, created_at as "createdAt"`;
  return row ?? null;
}

/** The e-mail addresses and telephone numbers with which an account signs in. */
export async function listAddresses(sql: Sql | Transaction, id: AccountId): Promise<ProofAddress[]> {
  return sql<ProofAddress[]>`select kind, address from account_address where account_id = ${id} order by kind, address`;
}

/**
 * Deactivates an account with the bots that it owns, or reactivates the account without its bots. Returns the changed
 * accounts.
 */
export async function deactivateWithBotsOrReactivate(
  tx: Transaction,
  id: AccountId,
  isDeactivation: boolean,
): Promise<AccountId[]> {
  const rows = await tx<{ id: AccountId }[]>`
    update account set deactivated_at = ${isDeactivation ? tx`now()` : tx`null`}
    where (id = ${id} or (${isDeactivation} and owner_id = ${id})) and (deactivated_at is null) = ${isDeactivation}
    returning id`;
  return rows.map((row) => row.id);
}
