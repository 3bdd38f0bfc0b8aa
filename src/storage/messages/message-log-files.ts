import type { Fragment, Sql } from '../db/connection.ts';

/** Parts of the statement that writes posts (`writeAnyPosts`), for flushes whose posts carry files. */
interface FileFragments {
  /**
   * CTEs between `fresh` (the new posts) and `numbered`. The last one, `accepted`, contains the posts that may be
   * written, with their `attachments`.
   */
  readonly fileCheckCtes: Fragment;
  /** A CTE after `advanced`: it assigns the files to their messages. */
  readonly attachFilesCte: Fragment;
}

/**
 * Attaches files in the statement that writes the messages. So no message exists whose files another message got, and
 * no file is attached whose message was not written.
 *
 * The statement locks the rows of the files after the heads: counting the rows of the CTE `fresh` makes PostgreSQL lock
 * all heads first. It locks the files in the order of their ids. So two transactions that attach or remove the same
 * files wait for each other in one direction only. It locks the newest version of a row, and a file's properties do not
 * change after it is stored. So the message has the properties of the locked row, not of an earlier read. Files that
 * are not stored, or belong to a message already, are not locked.
 *
 * A post is refused, and writes nothing, unless all its files belong to its sender and are free. If two posts of one
 * sender in a flush name the same file, the second post is refused. The first gets the file if it gets all of its
 * files.
 */
export function fileFragments(sql: Sql, posts: readonly { readonly attachments: readonly string[] }[]): FileFragments {
  const attachedFiles = posts.flatMap(({ attachments }, index) =>
    attachments.map((id, position) => ({ ord: index + 1, position, id })),
  );
  const fileCheckCtes = sql`
    named as (
      select * from unnest(
        ${attachedFiles.map((each) => each.ord)}::int[], ${attachedFiles.map((each) => each.position)}::int[],
        ${attachedFiles.map((each) => each.id)}::text[]
      ) as u(ord, position, id)
    ), free_file as (
      select f.id, f.owner_id, f.name, f.type, f.size, f.width, f.height from file f
      where f.id = any(${[...new Set(attachedFiles.map((each) => each.id))]}::text[]) and f.state = 'stored' and f.seq is null
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
  const attachFilesCte = sql`
    , attached as (
      update file f set conversation_id = n.conversation_id, seq = a.seq0 + n.n, updated_at = clock_timestamp()
      from named w join numbered n on n.ord = w.ord join advanced a on a.conversation_id = n.conversation_id
      where f.id = w.id
    )`;
  return { fileCheckCtes, attachFilesCte };
}

/** Returns those of the files whose rows another transaction holds locked right now. */
export async function findLockedFiles(sql: Sql, ids: readonly string[]): Promise<Set<string>> {
  const rows = await sql<{ id: string }[]>`
    with free as (
      select f.id from file f where f.id = any(${[...ids]}::text[]) order by f.id for update skip locked
    )
    select f.id from file f where f.id = any(${[...ids]}::text[]) and f.id not in (select id from free)`;
  return new Set(rows.map((row) => row.id));
}
