import type { Sql } from '../../src/storage/db/connection.ts';

/** Describes a schema in lines. Its queries of the catalogue give the same result on every version of PostgreSQL. */
export async function describeSchema(sql: Sql): Promise<string> {
  const tables = await sql<{ name: string; line: string }[]>`
    select c.relname as name, concat_ws(' ', case c.relkind when 'p' then 'partitioned table' else 'table' end, c.relname,
      case when c.relispartition then 'partition of ' || i.inhparent::regclass || ' '
        || pg_get_expr(c.relpartbound, c.oid) end,
      pg_get_partkeydef(c.oid), c.reloptions::text) as line
    from pg_class c left join pg_inherits i on i.inhrelid = c.oid
    where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') order by c.relname`;
  const parts = await sql<{ name: string; line: string }[]>`
    select name, line from (
      select c.relname as name, 1 as kind, lpad(a.attnum::text, 3, '0') as place, concat_ws(' ', '  column', a.attname,
        format_type(a.atttypid, a.atttypmod), case when a.attnotnull then 'not null' end,
        case a.attidentity when 'a' then 'always identity' when 'd' then 'default identity' end,
        'default ' || pg_get_expr(d.adbin, d.adrelid)) as line
      from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
        left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
      where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p')
      union all
      -- Since PostgreSQL 18 every "not null" is a constraint as well; the lines of the columns show it already.
      select r.conrelid::regclass::text, 2, r.conname, concat_ws(' ', '  constraint', r.conname, pg_get_constraintdef(r.oid))
      from pg_constraint r where r.connamespace = 'public'::regnamespace and r.contype <> 'n' and r.conrelid <> 0
      union all
      select t.relname, 3, x.relname, '  ' || pg_get_indexdef(x.oid)
      from pg_index i join pg_class x on x.oid = i.indexrelid join pg_class t on t.oid = i.indrelid
      where x.relnamespace = 'public'::regnamespace
    ) part order by name, kind, place collate "C"`;
  const others = await sql<{ line: string }[]>`
    select kind || ' ' || name as line from (
      select 'function' as kind, oid::regprocedure::text as name from pg_proc where pronamespace = 'public'::regnamespace
      union all select 'trigger', tgname from pg_trigger where not tgisinternal
      union all select 'view', viewname from pg_views where schemaname = 'public'
    ) other order by 1`;
  const lines = tables.flatMap(({ name, line }) => [
    line,
    ...parts.filter((part) => part.name === name).map((part) => part.line),
  ]);
  return [...lines, ...others.map(({ line }) => line), ''].join('\n');
}
