import { existsSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { migrate } from '../../../src/storage/db/migrate.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { VersionServer } from '../../support/version-server.ts';
import { expectSame, fillDatabase } from './filled.ts';
import { loadBackup, takeBackup } from './fixture.ts';

/** The folder of Debian's PostgreSQL programs. test/package/backup-versions.test.ts tests all versions. */
const BIN_DIR = '/usr/lib/postgresql/15/bin';

(existsSync(BIN_DIR) ? describe : describe.skip)('a backup between PostgreSQL 15 and the newest', () => {
  let server: VersionServer;
  let newest: TestDatabase;
  let old: TestDatabase;

  beforeAll(async () => {
    server = await VersionServer.start(BIN_DIR);
  });
  afterAll(async () => server.stop());
  beforeEach(async () => {
    newest = await createTestDatabase({ empty: true });
    old = await server.create();
  });
  afterEach(async () => {
    await newest.drop();
    await old.drop();
  });

  test.each(['up', 'down'] as const)('goes %s', async (direction) => {
    expect(server.version).toMatch(/^15\./);
    const [from, to] = direction === 'up' ? [old, newest] : [newest, old];
    await migrate(from.open().intake);
    await fillDatabase(from);
    await loadBackup(to.target, (await takeBackup(from.target)).bytes);
    await expectSame(from, to);
  });
});
