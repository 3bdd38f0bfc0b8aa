import type { AccountId } from '../../model/ids.ts';
import type { Sql, Transaction } from '../db/connection.ts';

/** A bot in the list of its owner. */
interface ListedBot {
  readonly id: AccountId;
  readonly nick: string;
  readonly name: string;
  readonly createdAt: Date;
  /** The number of the bot's tokens that have not expired. */
  readonly tokens: number;
}

const MAX_LISTED = 1_001;

/** Inserts a bot. Rejects with a violation of `account_nick_key` when the nick is taken. */
export async function insertBot(
  tx: Transaction,
  { ownerId, nick, name }: { ownerId: AccountId; nick: string; name: string },
): Promise<AccountId> {
  const [row] = await tx<{ id: AccountId }[]>`
    insert into account (kind, nick, name, role, owner_id) values ('bot', ${nick}, ${name}, 'bot', ${ownerId})
    returning id`;
  return row!.id;
}

/** The number of a person's bots, including those removed in the last day: a removed bot still uses up its nick. */
export async function countBotsIncludingRecentlyRemoved(tx: Transaction, ownerId: AccountId): Promise<number> {
  const [row] = await tx<{ count: number }[]>`
    select count(*)::int as count from account
    where owner_id = ${ownerId} and (deactivated_at is null or deactivated_at > now() - interval '1 day')`;
  return row!.count;
}

/** The active bot of this owner with this id or nick (in lower case), or null. */
export async function findActiveOwnBot(
  sql: Sql | Transaction,
  ownerId: AccountId,
  botIdOrNick: string | number,
): Promise<{ id: AccountId; nick: string } | null> {
  const [row] = await sql<{ id: AccountId; nick: string }[]>`
    select id, nick from account
    where owner_id = ${ownerId} and ${typeof botIdOrNick === 'number' ? sql`id = ${botIdOrNick}` : sql`nick = ${botIdOrNick}`}
      and deactivated_at is null`;
  return row ?? null;
}

/** The owner of a bot; null when the account is no bot. */
export async function findBotOwner(sql: Sql, bot: AccountId): Promise<AccountId | null> {
  const [row] = await sql<{ ownerId: AccountId | null }[]>`select owner_id as "ownerId" from account where id = ${bot}`;
  return row?.ownerId ?? null;
}

/** Active bots of a person, sorted by id. */
export async function listBotsOfOwner(
  sql: Sql,
  { ownerId, after, limit }: { ownerId: AccountId; after: number; limit: number },
): Promise<ListedBot[]> {
  return sql<ListedBot[]>`
    select a.id, a.nick, a.name, a.created_at as "createdAt", (
      select count(*) from session s
      where s.account_id = a.id and (s.expires_at is null or s.expires_at > now()))::int as tokens
    from account a
    where a.owner_id = ${ownerId} and a.id > ${after} and a.deactivated_at is null
    order by a.id limit ${Math.min(limit, MAX_LISTED)}`;
}
