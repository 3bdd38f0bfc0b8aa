import { join } from 'node:path';
import { Connection, type Sql } from '../../src/storage/db/connection.ts';
import { SUPERUSER } from '../../src/storage/embedded/cluster.ts';
import { findPostmaster } from '../../src/storage/embedded/postmaster.ts';
import { APP_DATABASE } from '../../src/storage/embedded/readiness.ts';
import type { ServerProcess } from '../../test/support/server-process.ts';

const QUERY_MS = 10_000;

/** Runs a statement on the embedded database of a server, over a connection of its own. */
export async function queryDatabase<Result>(
  server: ServerProcess,
  work: (sql: Sql) => PromiseLike<Result>,
): Promise<Result> {
  const postmaster = await findPostmaster(join(server.dataDir, 'postgresql'));
  if (postmaster?.status !== 'ready') throw new Error('the database of the server is not ready');
  const { socketDir: host, port } = postmaster;
  const target = { host, port, user: SUPERUSER, database: APP_DATABASE, password: '' };
  const connection = new Connection({ ...target, connectTimeoutMs: QUERY_MS, lockTimeoutMs: QUERY_MS }, 'faults');
  try {
    return await connection.run(async (sql) => work(sql), QUERY_MS);
  } finally {
    connection.close();
  }
}

/** The texts of a group's messages, in their order. */
export async function readStoredTexts(server: ServerProcess, group: number): Promise<string[]> {
  const rows = await queryDatabase(
    server,
    (sql) => sql<{ text: string }[]>`select text from message where conversation_id = ${group} order by seq`,
  );
  return rows.map(({ text }) => text);
}
