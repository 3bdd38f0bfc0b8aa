import type { AccountId, ConversationId, Rev, Seq } from '../../model/ids.ts';
import type { Sql, Transaction } from '../db/connection.ts';

export interface Group {
  readonly id: ConversationId;
  readonly title: string;
  readonly about: string | null;
  /** True: any account of the installation may find the group and join it. */
  readonly public: boolean;
  readonly createdAt: Date;
  readonly archivedAt: Date | null;
  /** The number of messages, including deleted ones, without those that a retention rule removed. */
  readonly messages: number;
  readonly members: number;
}

/** A group in the list of all groups. */
interface ListedGroup extends Omit<Group, 'about'> {
  /** The number of reverse webhooks that are not removed. */
  readonly hooks: number;
}

/** The groups to list: those after the id `after`, in the order of their ids. */
interface GroupPageRequest {
  readonly after: number;
  readonly limit: number;
  /** True: only archived groups; false: only groups that are not archived; null: all. */
  readonly archived: boolean | null;
}

const MAX_LISTED_GROUPS = 1_001;

/**
 * Inserts a group with its head. In the same transaction, the caller inserts the group's integration with
 * `insertIntegration`.
 */
export async function insertGroup(
  tx: Transaction,
  group: { title: string; about: string | null; public: boolean },
): Promise<ConversationId> {
  const { title, about, public: isPublic } = group;
  const [row] = await tx<{ id: ConversationId }[]>`
    insert into conversation (kind, title, about, public) values ('group', ${title}, ${about}, ${isPublic}) returning id`;
  await tx`insert into conversation_head (conversation_id) values (${row!.id})`;
  return row!.id;
}

export async function findGroup(sql: Sql | Transaction, id: ConversationId): Promise<Group | null> {
  const [row] = await sql<Group[]>`
    select c.id, c.title, c.about, c.public, c.created_at as "createdAt", h.archived_at as "archivedAt", h.last_seq - h.first_seq + 1 as messages,
      (select count(*) from membership m where m.conversation_id = c.id) as members
    from conversation c join conversation_head h on h.conversation_id = c.id
    where c.id = ${id} and c.kind = 'group'`;
  return row ?? null;
}

/** Groups by id, oldest first. The query cuts the page before it counts members and hooks. */
export async function listGroups(sql: Sql, page: GroupPageRequest): Promise<ListedGroup[]> {
  const { after, limit, archived } = page;
  return sql<ListedGroup[]>`
    select g.*,
      (select count(*) from membership m where m.conversation_id = g.id) as members,
      (select count(*) from reverse_hook r where r.conversation_id = g.id and r.removed_at is null) as hooks
    from (
      select c.id, c.title, c.public, c.created_at as "createdAt", h.archived_at as "archivedAt", h.last_seq - h.first_seq + 1 as messages
      from conversation c join conversation_head h on h.conversation_id = c.id
      where c.kind = 'group' and c.id > ${after}
        ${archived === null ? sql`` : sql`and (h.archived_at is not null) = ${archived}`}
      order by c.id limit ${Math.min(limit, MAX_LISTED_GROUPS)}
    ) g
    order by g.id`;
}

/**
 * Archives or unarchives a group. The transaction holds the head's lock until its commit, so that no flush that read
 * the previous state writes after it. Returns whether the state changed.
 */
export async function setArchived(tx: Transaction, id: ConversationId, archived: boolean): Promise<boolean> {
  await lockGroup(tx, id);
  const rows = await tx`
    update conversation_head set archived_at = ${archived ? tx`now()` : tx`null`}
    where conversation_id = ${id} and (archived_at is not null) <> ${archived}
    returning conversation_id`;
  return rows.length > 0;
}

/** A conversation's counters, read under the head's lock. */
export interface LockedHead {
  readonly lastSeq: Seq;
  readonly lastRev: Rev;
  readonly archived: boolean;
}

/**
 * Locks a group's head until the transaction ends: every writer that counts or numbers something of the group takes
 * this lock.
 */
export async function lockGroup(tx: Transaction, id: ConversationId): Promise<LockedHead | null> {
  const [row] = await tx<LockedHead[]>`
    select last_seq as "lastSeq", last_rev as "lastRev", archived_at is not null as archived
    from conversation_head where conversation_id = ${id} for no key update`;
  return row ?? null;
}

/** The new title, description and visibility of a group; fields that are left out keep their value. */
interface GroupChanges {
  readonly title?: string | undefined;
  /** Null: removes the description. */
  readonly about?: string | null | undefined;
  readonly public?: boolean | undefined;
}

/**
 * Changes title, description or visibility of a group; the caller holds the lock of the group's head. Returns the
 * fields that changed.
 */
export async function updateGroup(
  tx: Transaction,
  id: ConversationId,
  changes: GroupChanges,
): Promise<ReadonlySet<keyof GroupChanges>> {
  const old = (await findGroup(tx, id))!;
  const keys = ['title', 'about', 'public'] as const;
  const changed = new Set(keys.filter((key) => changes[key] !== undefined && changes[key] !== old[key]));
  if (changed.size === 0) return changed;
  const { title, about, public: isPublic } = { ...old, ...withoutUndefined(changes) };
  await tx`update conversation set title = ${title}, about = ${about}, public = ${isPublic} where id = ${id}`;
  return changed;
}

function withoutUndefined(changes: GroupChanges): Partial<Pick<Group, 'title' | 'about' | 'public'>> {
  return Object.fromEntries(Object.entries(changes).filter(([, value]) => value !== undefined));
}

/** A public group, as a search shows it. */
interface PublicGroup {
  readonly id: ConversationId;
  readonly title: string;
  readonly about: string | null;
  readonly members: number;
  /** Whether the searching account is a member. */
  readonly joined: boolean;
}

/**
 * Public groups that are not archived, sorted by title; with `text`, those whose title contains it. The page starts
 * after the current title of the group `after`. If that group is not public, the page is empty, so the id reveals
 * nothing, not even the position of the group's title.
 */
export async function searchPublicGroups(
  sql: Sql,
  page: { text: string | null; after: number; limit: number; accountId: AccountId | null },
): Promise<PublicGroup[]> {
  const { text, after, limit, accountId } = page;
  const pattern = text === null ? null : `%${text.replaceAll(/[\\%_]/g, '\\$&')}%`;
  return sql<PublicGroup[]>`
    select g.id, g.title, g.about,
      (select count(*) from membership m where m.conversation_id = g.id) as members,
      exists (select from membership m where m.conversation_id = g.id and m.account_id = ${accountId}) as joined
    from (
      select c.id, c.title, c.about, lower(c.title) as place
      from conversation c join conversation_head h on h.conversation_id = c.id
      where c.public and h.archived_at is null
        ${pattern === null ? sql`` : sql`and lower(c.title) like lower(${pattern})`}
        ${
          after === 0
            ? sql``
            : sql`and (lower(c.title), c.id) > (select lower(a.title), a.id from conversation a where a.id = ${after} and a.public)`
        }
      order by lower(c.title), c.id limit ${Math.min(limit, MAX_LISTED_GROUPS)}
    ) g
    order by g.place, g.id`;
}

/** Ids of the groups with exactly this title, oldest first; at most ten. */
export async function findGroupsByTitle(sql: Sql, title: string): Promise<ConversationId[]> {
  const rows = await sql<{ id: ConversationId }[]>`
    select id from conversation where kind = 'group' and title = ${title} order by id limit 10`;
  return rows.map((row) => row.id);
}
