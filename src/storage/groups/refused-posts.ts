import type { ConversationId } from '../../model/ids.ts';
import type { Sql } from '../db/connection.ts';

/** If a group has more rows in `refused_post` than this, the ones whose last post is oldest are deleted. */
export const MAX_REFUSED_POSTS_PER_GROUP = 20;

/** The properties that refused posts of a group have in common. None of them comes from the body of a post. */
export interface RefusalReason {
  /** The User-Agent of the posts, in printable ASCII; null: the posts had none. */
  readonly userAgent: string | null;
  /** The caller's format in which the bodies were read; null: no product's format. */
  readonly format: string | null;
  /** The error code of the refusal (`src/errors.ts`). */
  readonly code: string;
  /** The sentence of the answer to the sender, or the error in the address that the sender posted to. */
  readonly sentence: string;
}

/** Refused posts to add to those in the database. */
export interface NewRefusedPosts extends RefusalReason {
  readonly conversationId: ConversationId;
  /** A hash of the reason: equal for equal reasons. */
  readonly fingerprint: string;
  readonly posts: number;
  /** The ages of the first and of the last of these posts. */
  readonly firstAgeMicros: number;
  readonly lastAgeMicros: number;
}

/** Refused posts of one reason; the sentence is that of the newest post. */
interface StoredRefusedPosts extends RefusalReason {
  readonly posts: number;
  readonly firstAt: Date;
  readonly lastAt: Date;
}

/**
 * Adds refused posts in one statement; `added` has at most one entry for each group and fingerprint. A group keeps its
 * newest `MAX_REFUSED_POSTS_PER_GROUP` rows: the statement deletes older rows and does not insert older entries. If two
 * nodes run it at once, more rows may stay until the next call for the group.
 */
export async function addRefusedPosts(sql: Sql, added: readonly NewRefusedPosts[]): Promise<void> {
  const column = <Value>(valueOf: (entry: NewRefusedPosts) => Value): Value[] => added.map(valueOf);
  await sql`
    with input as (
      select i.*, now() - first_age_micros * interval '1 microsecond' as first_at,
        now() - last_age_micros * interval '1 microsecond' as last_at
      from unnest(
        ${column((entry) => entry.conversationId)}::bigint[], ${column((entry) => entry.fingerprint)}::text[],
        ${column((entry) => entry.userAgent)}::text[], ${column((entry) => entry.format)}::text[],
        ${column((entry) => entry.code)}::text[], ${column((entry) => entry.sentence)}::text[],
        ${column((entry) => entry.posts)}::bigint[], ${column((entry) => entry.firstAgeMicros)}::bigint[],
        ${column((entry) => entry.lastAgeMicros)}::bigint[]
      ) as i (conversation_id, fingerprint, user_agent, format, code, sentence, posts, first_age_micros, last_age_micros)
    ), ranked as (
      select conversation_id, fingerprint,
        row_number() over (partition by conversation_id order by max(last_at) desc, fingerprint) as rank
      from (
        select conversation_id, fingerprint, last_at from input
        union all
        select conversation_id, fingerprint, last_at from refused_post
        where conversation_id in (select conversation_id from input)
      ) known
      group by conversation_id, fingerprint
    ), dropped as (
      delete from refused_post where ctid = any(array(
        select r.ctid from refused_post r
        join ranked k on k.conversation_id = r.conversation_id and k.fingerprint = r.fingerprint
        where k.rank > ${MAX_REFUSED_POSTS_PER_GROUP} for update of r skip locked))
    )
    insert into refused_post as r (
      conversation_id, fingerprint, user_agent, format, code, sentence, posts, first_at, last_at)
    select i.conversation_id, i.fingerprint, i.user_agent, i.format, i.code, i.sentence, i.posts, i.first_at, i.last_at
    from input i join ranked k on k.conversation_id = i.conversation_id and k.fingerprint = i.fingerprint
    -- Without posts of a deleted group: the foreign key would make the statement fail for all groups.
    where k.rank <= ${MAX_REFUSED_POSTS_PER_GROUP} and exists (select from conversation c where c.id = i.conversation_id)
    -- All nodes write rows in the same order, so that two nodes cannot deadlock.
    order by i.conversation_id, i.fingerprint
    on conflict (conversation_id, fingerprint) do update set
      posts = r.posts + excluded.posts, sentence = excluded.sentence,
      first_at = least(r.first_at, excluded.first_at), last_at = greatest(r.last_at, excluded.last_at)`;
}

/** The refused posts of a group, newest first. */
export async function listRefusedPosts(sql: Sql, conversationId: ConversationId): Promise<StoredRefusedPosts[]> {
  return sql<StoredRefusedPosts[]>`
    select user_agent as "userAgent", format, code, sentence, posts, first_at as "firstAt", last_at as "lastAt"
    from refused_post where conversation_id = ${conversationId}
    order by last_at desc, fingerprint limit ${MAX_REFUSED_POSTS_PER_GROUP}`;
}
