import type { Fragment, Sql } from '../db/connection.ts';

/** What the writing statement takes in where posts of a flush carry files. */
interface FileFragments {
  /** CTEs between `fresh` and `numbered`; the last one, `accepted`, is `fresh` with `attachments`. */
  readonly taken: Fragment;
  /** A CTE behind `advanced`: the files belong to their messages. */
  readonly attached: Fragment;
}

/**
 * Attaches files in the statement that writes the messages, so that there is neither a message whose files somebody else
 * got nor a file that was lost with its message.
 *
 * The rows are locked behind the heads (the count of `fresh` takes all of them first) and in the order of their ids, so
 * that whoever attaches or removes the same files meanwhile waits or is waited for, and never both. What is locked is the
 * newest version of a row, and what a file is has not changed since it was stored: the message says what the row says,
 * not what somebody read before. Rows that are not stored, or belong to a message already, are not locked at all.
 *
 * A post whose files are not all its sender's and free is not accepted, and writes nothing. Of two posts of one sender in
 * one flush that name the same file the first one gets it, if it gets all of its files; the other is refused in either case.
 */
export function fileFragments(sql: Sql, posts: readonly { readonly attachments: readonly string[] }[]): FileFragments {
  const named = posts.flatMap(({ attachments }, index) =>
    attachments.map((id, position) => ({ ord: index + 1, position, id })),
  );
  const taken = sql`
    named as (
      select * from unnest(
        ${named.map((each) => each.ord)}::int[], ${named.map((each) => each.position)}::int[],
        ${named.map((each) => each.id)}::text[]
      ) as u(ord, position, id)
    ), free_file as (
      select f.id, f.owner_id, f.name, f.type, f.size, f.width, f.height from file f
      where f.id = any(${[...new Set(named.map((each) => each.id))]}::text[]) and f.state = 'stored' and f.seq is null
        and (select count(*) from fresh) > 0
      order by f.id for update
    ), carried as (
      select w.ord,
        jsonb_agg(
          jsonb_build_object('id', f.id, 'name', f.name, 'type', f.type, 'size', f.size)
            || case when f.width is null then '{}' else jsonb_build_object('width', f.width, 'height', f.height) end
          order by w.position) as files
      from named w join fresh p on p.ord = w.ord
      left join free_file f on f.id = w.id and f.owner_id = p.sender_id and not exists (
        select from named e join fresh q on q.ord = e.ord
        where e.id = w.id and e.ord < w.ord and q.sender_id = p.sender_id)
      group by w.ord having count(*) = count(f.id)
    ), accepted as (
      select p.*, c.files as attachments from fresh p left join carried c on c.ord = p.ord
      where c.ord is not null or p.ord not in (select ord from named)
    )`;
  const attached = sql`
    , attached as (
      update file f set conversation_id = n.conversation_id, seq = a.seq0 + n.n, updated_at = clock_timestamp()
      from named w join numbered n on n.ord = w.ord join advanced a on a.conversation_id = n.conversation_id
      where f.id = w.id
    )`;
  return { taken, attached };
}

/** Which of these files somebody else holds locked right now. */
export async function findLockedFiles(sql: Sql, ids: readonly string[]): Promise<Set<string>> {
  const rows = await sql<{ id: string }[]>`
    with free as (
      select f.id from file f where f.id = any(${[...ids]}::text[]) order by f.id for update skip locked
    )
    select f.id from file f where f.id = any(${[...ids]}::text[]) and f.id not in (select id from free)`;
  return new Set(rows.map((row) => row.id));
}
