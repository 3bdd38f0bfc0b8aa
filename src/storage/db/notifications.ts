import type { Sql } from './connection.ts';

const NOTIFY_CHANNEL = 'klatch';

/** Makes this session receive the nodes' notifications. */
export async function listen(sql: Sql): Promise<void> {
  await sql`listen ${sql(NOTIFY_CHANNEL)}`;
}

/** Sends one notification to every listening node; at most 7,999 bytes. */
export async function notify(sql: Sql, payload: string): Promise<void> {
  await sql`select pg_notify(${NOTIFY_CHANNEL}, ${payload})`;
}
