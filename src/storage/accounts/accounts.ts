import type { AccountId, ConversationId } from '../../model/ids.ts';
import type { GroupRole, InstallationRole, SenderKind } from '../../model/roles.ts';
import type { Sql, Transaction } from '../db/connection.ts';

export interface Account {
  readonly id: AccountId;
  readonly kind: SenderKind;
  /** Lower case; null for an integration's account. */
  readonly nick: string | null;
  readonly name: string;
  readonly role: InstallationRole;
}

/** Inserts an account. Rejects with a violation of `account_nick_key` when the nick is taken. */
export async function insertAccount(tx: Sql | Transaction, account: Omit<Account, 'id'>): Promise<AccountId> {
  const [row] = await tx<{ id: AccountId }[]>`
    insert into account (kind, nick, name, role)
    values (${account.kind}, ${account.nick}, ${account.name}, ${account.role})
    returning id`;
  return row!.id;
}

export async function findActiveAccountByNick(sql: Sql | Transaction, nick: string): Promise<Account | null> {
  const [row] = await sql<Account[]>`
    select id, kind, nick, name, role from account where nick = ${nick.toLowerCase()} and deactivated_at is null`;
  return row ?? null;
}

/** An account in a list; `groupRole` is null unless the list is that of a group. */
interface ListedAccount extends Account {
  readonly nick: string;
  readonly createdAt: Date;
  readonly deactivated: boolean;
  /** Whether the account has a session; for a bot, whether it has a token. */
  readonly signedIn: boolean;
  readonly groups: number;
  readonly groupRole: GroupRole | null;
}

/** The accounts to list: those after the nick `after`, in the order of their nicks. */
export interface AccountPageRequest {
  readonly after: string;
  readonly limit: number;
  readonly role: InstallationRole | null;
  /** Lists only the members of this group; null: all accounts. */
  readonly conversationId: ConversationId | null;
}

const MAX_LISTED = 1_001;

/** People and bots, sorted by nick. Accounts of integrations have no nick, so a scan of the nicks skips them. */
export async function listAccounts(sql: Sql, page: AccountPageRequest): Promise<ListedAccount[]> {
  const { conversationId, role } = page;
  const membershipJoin = sql`join membership m on m.account_id = a.id and m.conversation_id = ${conversationId}`;
  return sql<ListedAccount[]>`
    select a.id, a.kind, a.nick, a.name, a.role, a.created_at as "createdAt",
      a.deactivated_at is not null as deactivated, a."groupRole",
      exists (
        select from session s where s.account_id = a.id and (s.expires_at is null or s.expires_at > now())
      ) as "signedIn",
      (
        select count(*) from membership g join conversation c on c.id = g.conversation_id
        where g.account_id = a.id and c.kind = 'group'
      ) as groups
    from (
      select a.*, ${conversationId === null ? sql`null::text` : sql`m.role`} as "groupRole"
      from account a ${conversationId === null ? sql`` : membershipJoin}
      where a.nick > ${page.after} ${role === null ? sql`` : sql`and a.role = ${role}`}
      order by a.nick limit ${Math.min(page.limit, MAX_LISTED)}
    ) a
    order by a.nick`;
}

/** An account of a person or a bot, which has a nick. */
export interface UserOrBotAccount extends Account {
  readonly kind: 'user' | 'bot';
  readonly nick: string;
}

/**
 * Locks an account until the transaction ends, so that a sign-in and a deactivation cannot overlap; null: there is no
 * active account with this id.
 */
export async function lockActiveAccount(tx: Transaction, id: AccountId): Promise<UserOrBotAccount | null> {
  const [row] = await tx<UserOrBotAccount[]>`
    select id, kind, nick, name, role from account
    where id = ${id} and deactivated_at is null and kind <> 'webhook' for no key update`;
  return row ?? null;
}
