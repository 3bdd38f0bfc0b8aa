import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { silentLog } from '../../src/log.ts';
import { Server } from '../../src/server.ts';
import { SCHEMA_LOCK_KEY as MIGRATION_LOCK } from '../../src/storage/db/migrate.ts';
import { testConfig } from '../support/config.ts';
import { createTestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { postJson, readJson, TestServer } from '../support/server.ts';
import { expectResponseHeaders } from './wire.ts';

describe('the health of a server', () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await TestServer.start();
  });
  afterAll(() => server.stop());

  test.each([
    ['/v1/status', { status: 'Ok' }],
    ['/v1/ready', { status: 'Ok' }],
  ])('%s is 200', async (path, body) => {
    for (const spelling of [path, `${path}/`, `${path}?x=1`]) {
      const response = await readJson(await fetch(`${server.url}${spelling}`));
      expect([response.status, response.body]).toEqual([200, body]);
      expectResponseHeaders(response);
    }
  });

  test('is asked of the database once, however many ask', async () => {
    const countPings = async (): Promise<number> => {
      const [row] = await server.database.query(
        (sql) => sql<{ count: number }[]>`
          select xact_commit::int as count from pg_stat_database where datname = current_database()`,
      );
      return row!.count;
    };
    const before = await countPings();
    const responses = await Promise.all(Array.from({ length: 300 }, () => fetch(`${server.url}/v1/ready`)));
    await Promise.all(responses.map((response) => response.text()));
    expect(new Set(responses.map((response) => response.status))).toEqual(new Set([200]));
    expect((await countPings()) - before).toBeLessThan(100);
  });
});

test('a server whose database is being brought up to date is alive and not ready', async () => {
  const database = await createTestDatabase({ empty: true });
  const dataDir = await mkdtemp(join(tmpdir(), 'klatch-starting-'));
  const server = new Server(testConfig(database.target, dataDir), silentLog());
  let starting = Promise.resolve();
  try {
    await database.query(async (sql) => {
      // The test holds the lock that another node holds while it changes the schema.
      await sql`select pg_advisory_lock(${MIGRATION_LOCK})`;
      starting = server.start();
      const port = await eventually(
        async () => server.port,
        (number) => number > 0,
      );
      const url = `http://127.0.0.1:${port}/v1`;
      expect((await fetch(`${url}/status`)).status).toBe(200);
      const ready = await readJson(await fetch(`${url}/ready`));
      expect([ready.status, ready.headers.get('retry-after')]).toEqual([503, '2']);
      expect((await postJson(`${url}/webhooks/${'x'.repeat(43)}`, { text: 'early' })).status).toBe(503);
    });
    await starting;
    expect((await fetch(`http://127.0.0.1:${server.port}/v1/ready`)).status).toBe(200);
  } finally {
    await server.stop();
    await database.drop();
    await rm(dataDir, { recursive: true, force: true });
  }
});
