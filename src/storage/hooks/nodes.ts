import type { Sql } from '../db/connection.ts';

/** Rows of nodes that ended without an orderly stop are kept this long, for administrators. */
const DEAD_NODE_RETENTION = '1 day';

/**
 * Registers this node as live for `leaseMs`, and returns all live nodes, this one included, in the order of their ids.
 * A row that expires more than twice `leaseMs` from now does not count as live: it was written before the database's
 * clock was set back.
 */
export async function heartbeatAndListLiveNodes(sql: Sql, id: string, leaseMs: number): Promise<string[]> {
  await sql`
    with dead as (delete from node where expires_at < clock_timestamp() - ${DEAD_NODE_RETENTION}::interval and id <> ${id})
    insert into node (id, expires_at) values (${id}, clock_timestamp() + ${leaseMs} * interval '1 millisecond')
    on conflict (id) do update set expires_at = excluded.expires_at`;
  const rows = await sql<{ id: string }[]>`
    select id from node where expires_at > clock_timestamp()
      and expires_at <= clock_timestamp() + ${leaseMs} * interval '2 milliseconds'
    order by id`;
  return rows.map((row) => row.id);
}

/** The ids of the nodes that are live now, by the database's clock. */
export async function listLiveNodes(sql: Sql): Promise<string[]> {
  const rows = await sql<{ id: string }[]>`select id from node where expires_at > clock_timestamp()`;
  return rows.map((row) => row.id);
}

/** Removes this node, so that it gets no share of the partitions. */
export async function deleteNode(sql: Sql, id: string): Promise<void> {
  await sql`delete from node where id = ${id}`;
}
