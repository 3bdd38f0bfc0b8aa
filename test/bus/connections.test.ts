import { expect, test } from '@jest/globals';
import { PostgresBus } from '../../src/bus/postgres-bus.ts';
import { DEDICATED_DATABASE_CONNECTIONS } from '../../src/doctor/open-files.ts';
import { silentLog } from '../../src/log.ts';
import type { ConversationId, Seq } from '../../src/model/ids.ts';
import type { Pool } from '../../src/storage/db/pool.ts';
import { postgresqlConfig } from '../support/config.ts';
import { createTestDatabase } from '../support/database.ts';
import { eventually, HANG_MS } from '../support/eventually.ts';
import { TestServer } from '../support/server.ts';

test('a server with everything in use has as many connections as the doctor and the documents reckon with', async () => {
  const database = await createTestDatabase();
  const opened = database.open();
  const bus = new PostgresBus(opened, silentLog());
  const sessions = async (): Promise<string[]> => {
    const rows = await database.query(
      (sql) => sql<{ name: string }[]>`
        select application_name as name from pg_stat_activity
        where datname = current_database() and application_name like 'klatch %' and application_name <> 'klatch test'`,
    );
    return rows.map(({ name }) => name).sort();
  };
  const { promise: counted, resolve: stop } = Promise.withResolvers<void>();
  try {
    // Each pool gets one call more than it has connections. Each call holds its connection until all sessions were
    // counted.
    const hold = (pool: Pool): Promise<unknown>[] =>
      Array.from({ length: pool.maxConnections + 1 }, () =>
        pool.run(async (sql) => {
          await sql`select 1`;
          await counted;
        }, HANG_MS),
      );
    const { intake, lease, live, search, general } = opened;
    const held = [intake, lease, live, search, general].flatMap(hold);
    await opened.settle.write([]).catch(() => {});
    bus.start();
    bus.publish('messagesCommitted', new Map([[1 as ConversationId, 1 as Seq]]));
    const expected = DEDICATED_DATABASE_CONNECTIONS + postgresqlConfig.generalPoolSize;
    const all = await eventually(sessions, ({ length }) => length >= expected);
    expect(all).toHaveLength(expected);
    stop();
    await Promise.all(held);
    // A server has no session with another name either.
    const server = await TestServer.start({}, { database });
    try {
      expect((await sessions()).filter((name) => !all.includes(name))).toEqual([]);
    } finally {
      await server.stop();
    }
  } finally {
    stop();
    bus.stop();
    await database.drop();
  }
});
