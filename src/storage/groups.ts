import type { AccountId, ConversationId, Seq } from '../model/ids.ts';
import type { GroupRole } from '../model/roles.ts';
import type { Sql, Transaction } from './connection.ts';

export interface Group {
  readonly id: ConversationId;
  readonly title: string;
  readonly about: string | null;
  readonly createdAt: Date;
  readonly archivedAt: Date | null;
  readonly lastSeq: Seq;
  readonly members: number;
}

/** A group in the list of all. */
export interface ListedGroup extends Omit<Group, 'about'> {
  /** Reverse webhooks that are not removed. */
  readonly hooks: number;
}

/** Which groups to list: by id, after this one. */
export interface GroupPage {
  readonly after: number;
  readonly limit: number;
  /** Only those that are archived, or only those that are not; null: all. */
  readonly archived: boolean | null;
}

const MAX_LISTED = 1_001;

/** Makes a group with its counters. Its integration is made by `insertIntegration` in the same transaction. */
export async function insertGroup(tx: Transaction, title: string, about: string | null): Promise<ConversationId> {
  const [row] = await tx<{ id: ConversationId }[]>`
    insert into conversation (kind, title, about) values ('group', ${title}, ${about}) returning id`;
  await tx`insert into conversation_head (conversation_id) values (${row!.id})`;
  return row!.id;
}

export async function insertMember(
  tx: Transaction,
  member: { conversationId: ConversationId; accountId: AccountId; role: GroupRole },
): Promise<void> {
  await tx`
    insert into membership (conversation_id, account_id, role)
    values (${member.conversationId}, ${member.accountId}, ${member.role})`;
}

export async function findGroup(sql: Sql | Transaction, id: ConversationId): Promise<Group | null> {
  const [row] = await sql<Group[]>`
    select c.id, c.title, c.about, c.created_at as "createdAt", h.archived_at as "archivedAt", h.last_seq as "lastSeq",
      (select count(*) from membership m where m.conversation_id = c.id) as members
    from conversation c join conversation_head h on h.conversation_id = c.id
    where c.id = ${id} and c.kind = 'group'`;
  return row ?? null;
}

/** Groups by id, oldest first. The page is cut before anything is counted. */
export async function listGroups(sql: Sql, page: GroupPage): Promise<ListedGroup[]> {
  const { after, limit, archived } = page;
  return sql<ListedGroup[]>`
    select g.*,
      (select count(*) from membership m where m.conversation_id = g.id) as members,
      (select count(*) from reverse_hook r where r.conversation_id = g.id and r.removed_at is null) as hooks
    from (
      select c.id, c.title, c.created_at as "createdAt", h.archived_at as "archivedAt", h.last_seq as "lastSeq"
      from conversation c join conversation_head h on h.conversation_id = c.id
      where c.kind = 'group' and c.id > ${after}
        ${archived === null ? sql`` : sql`and (h.archived_at is not null) = ${archived}`}
      order by c.id limit ${Math.min(limit, MAX_LISTED)}
    ) g
    order by g.id`;
}

/**
 * Archives a group, or takes it back. The head's lock is held until the commit, so that no flush that read the other
 * state comes after it. Returns whether that changed anything.
 */
export async function setArchived(tx: Transaction, id: ConversationId, archived: boolean): Promise<boolean> {
  await lockGroup(tx, id);
  const rows = await tx`
    update conversation_head set archived_at = ${archived ? tx`now()` : tx`null`}
    where conversation_id = ${id} and (archived_at is not null) <> ${archived}
    returning conversation_id`;
  return rows.length > 0;
}

/** Locks a group's counters until the transaction ends: whoever counts or numbers something of the group holds them. */
export async function lockGroup(tx: Transaction, id: ConversationId): Promise<{ lastSeq: Seq } | null> {
  const [row] = await tx<{ lastSeq: Seq }[]>`
    select last_seq as "lastSeq" from conversation_head where conversation_id = ${id} for no key update`;
  return row ?? null;
}

/** Numbers of the groups with exactly this title, oldest first; at most ten. */
export async function findGroupsByTitle(sql: Sql, title: string): Promise<ConversationId[]> {
  const rows = await sql<{ id: ConversationId }[]>`
    select id from conversation where kind = 'group' and title = ${title} order by id limit 10`;
  return rows.map((row) => row.id);
}
