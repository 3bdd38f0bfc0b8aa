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

const MAX_LISTED = 1_000;

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

/** Groups by id, oldest first; at most 1,000. */
export async function listGroups(sql: Sql, after: number, limit: number): Promise<Group[]> {
  return sql<Group[]>`
    select c.id, c.title, c.about, c.created_at as "createdAt", h.archived_at as "archivedAt", h.last_seq as "lastSeq",
      (select count(*) from membership m where m.conversation_id = c.id) as members
    from conversation c join conversation_head h on h.conversation_id = c.id
    where c.kind = 'group' and c.id > ${after}
    order by c.id limit ${Math.min(limit, MAX_LISTED)}`;
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
