import type { AccountId } from '../model/ids.ts';
import type { InstallationRole, SenderKind } from '../model/roles.ts';
import type { Sql, Transaction } from './connection.ts';

export interface Account {
  readonly id: AccountId;
  readonly kind: SenderKind;
  /** Lower case; null for an integration's account. */
  readonly nick: string | null;
  readonly name: string;
  readonly role: InstallationRole;
}

/** Makes an account. Rejects with a violation of `account_nick_key` when the nick is taken. */
export async function insertAccount(tx: Sql | Transaction, account: Omit<Account, 'id'>): Promise<AccountId> {
  const [row] = await tx<{ id: AccountId }[]>`
    insert into account (kind, nick, name, role)
    values (${account.kind}, ${account.nick}, ${account.name}, ${account.role})
    returning id`;
  return row!.id;
}

export async function findAccountByNick(sql: Sql | Transaction, nick: string): Promise<Account | null> {
  const [row] = await sql<Account[]>`
    select id, kind, nick, name, role from account where nick = ${nick.toLowerCase()} and deactivated_at is null`;
  return row ?? null;
}
