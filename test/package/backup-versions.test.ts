import { existsSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { POSTGRESQL_MAJORS, postgresqlBinDir } from '../../scripts/package/postgresql-versions.ts';
import { migrate } from '../../src/storage/db/migrate.ts';
import { expectSame, fillDatabase } from '../storage/backup/filled.ts';
import { loadBackup, takeBackup } from '../storage/backup/fixture.ts';
import type { TestDatabase } from '../support/database.ts';
import { VersionServer } from '../support/version-server.ts';

describe('a backup', () => {
  const servers = new Map<number, VersionServer>();
  /** By major version of PostgreSQL: a filled database and its backup. */
  const filled = new Map<number, { database: TestDatabase; bytes: Buffer }>();

  beforeAll(async () => {
    const missing = POSTGRESQL_MAJORS.filter((major) => !existsSync(postgresqlBinDir(major)));
    if (missing.length > 0) {
      const fetch = 'node_modules/.bin/node scripts/package/postgresql-versions.ts';
      throw new Error(`PostgreSQL ${missing.join(', ')} is not in build/: run ${fetch}`);
    }
    for (const major of POSTGRESQL_MAJORS) {
      const server = await VersionServer.start(postgresqlBinDir(major));
      servers.set(major, server);
      expect(server.version).toMatch(new RegExp(`^${major}\\.`));
      const database = await server.create();
      await migrate(database.open().intake);
      await fillDatabase(database);
      filled.set(major, { database, bytes: (await takeBackup(database.target)).bytes });
    }
  });
  afterAll(async () => {
    for (const { database } of filled.values()) await database.drop();
    for (const server of servers.values()) await server.stop();
  });

  test.each(POSTGRESQL_MAJORS.flatMap((from) => POSTGRESQL_MAJORS.map((to) => [from, to])))(
    'of PostgreSQL %d makes the same database in %d',
    async (from, to) => {
      const { database, bytes } = filled.get(from)!;
      const copy = await servers.get(to)!.create();
      try {
        await loadBackup(copy.target, bytes);
        await expectSame(database, copy);
      } finally {
        await copy.drop();
      }
    },
  );
});
