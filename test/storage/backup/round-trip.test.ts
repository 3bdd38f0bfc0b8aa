import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { AccountId, ConversationId, Seq } from '../../../src/model/ids.ts';
import { Connection } from '../../../src/storage/db/connection.ts';
import { MessageLog } from '../../../src/storage/messages/message-log.ts';
import { readHistory } from '../../../src/storage/messages/messages.ts';
import { newestSchemaVersion, readMigrations } from '../../../src/storage/db/migration-files.ts';
import { createOrCheckCanary, Sealer, WrongSecretError } from '../../../src/storage/db/sealed.ts';
import { findStoreId } from '../../../src/storage/files/store-id.ts';
import { DatabaseInUseError } from '../../../src/storage/rotate-secret.ts';
import { BackupError } from '../../../src/storage/backup/format.ts';
import { withSnapshot } from '../../../src/storage/backup/snapshot.ts';
import { BACKED_UP_TABLES, EXCLUDED_TABLE_REASONS, readDatabaseTables } from '../../../src/storage/backup/tables.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { logOptions, makeGroups, makeHook, post, readWholeLog } from '../fixture.ts';
import { describeSchema } from '../schema.ts';
import { ATTACHED, fillDatabase, MESSAGES, rowsOf } from './filled.ts';
import { loadBackup, replaceHeader, sealer, takeBackup } from './fixture.ts';

let source: TestDatabase;
let target: TestDatabase;

beforeEach(async () => {
  source = await createTestDatabase();
  target = await createTestDatabase({ empty: true });
});
afterEach(async () => {
  await source.drop();
  await target.drop();
});

const fill = (): Promise<void> => fillDatabase(source);

describe('a backup', () => {
  test('knows each table of the schema, as one that it carries or one that it leaves out for a reason', async () => {
    const { tables, nonKlatchTables } = await source.query(readDatabaseTables);
    expect(nonKlatchTables).toEqual([]);
    expect(tables.map(({ name }) => name).sort()).toEqual([...BACKED_UP_TABLES].sort());
    for (const name of Object.keys(EXCLUDED_TABLE_REASONS)) await rowsOf(source, name);
  });

  test('makes the same database elsewhere: schema, rows, positions of numbers, days of the delivery log', async () => {
    await fill();
    const { bytes, written } = await takeBackup(source.target);
    const loaded = await loadBackup(target.target, bytes);
    expect(loaded).toMatchObject({ appliedMigrations: [] });
    expect(await target.query(findStoreId)).toBe('unassigned');
    expect(await target.query(describeSchema)).toBe(await source.query(describeSchema));
    for (const table of BACKED_UP_TABLES) {
      const rows = await rowsOf(source, table);
      expect(await rowsOf(target, table)).toEqual(rows);
      expect(written.manifest.rows[table]).toBe(rows.length);
    }
    expect((await readWholeLog(target)).length).toBe(MESSAGES);
    const [group] = await makeGroups(target, 1);
    expect(group!.id).toBe(4);
    expect(await makeHook(target, group!)).toBe(3);
  });

  test('has the files of messages as readers see them, and as those who attach them', async () => {
    await fill();
    await loadBackup(target.target, (await takeBackup(source.target)).bytes);
    const request = { direction: 'before', seq: 1_000 as Seq, limit: 1, maxBytes: 1_000 } as const;
    const [group] = await target.query(
      (sql) => sql<{ id: ConversationId; accountId: AccountId; tokenHash: string }[]>`
      select conversation_id as id, account_id as "accountId", token_hash as "tokenHash" from integration
      order by conversation_id limit 1`,
    );
    const page = await target.query((sql) => readHistory(sql, { ...request, conversationId: group!.id }));
    expect(page!.messages).toMatchObject([{ text: '', attachments: [ATTACHED] }]);
    const log = new MessageLog(target.open().intake, logOptions());
    const again = post(group!, 'again', { attachments: [ATTACHED.id] });
    expect(await log.append(again)).toEqual({ outcome: 'refused' });
    await log.stop();
  });

  test('leaves out who delivers, and gives partitions epochs that nobody has held', async () => {
    await fill();
    await loadBackup(target.target, (await takeBackup(source.target)).bytes);
    expect(await rowsOf(target, 'node')).toEqual([]);
    const [lease] = await target.query(
      (sql) => sql`
        select count(*) as partitions, count(holder) as held, min(epoch) as epoch, bool_and(expires_at = '-infinity') as free
        from lease`,
    );
    expect(lease).toMatchObject({ partitions: 64, held: 0, free: true });
    expect(lease!['epoch']).toBeGreaterThan(1_700_000_000);
  });

  test('holds one moment, whatever is posted meanwhile', async () => {
    const groups = await makeGroups(source, 3);
    const log = new MessageLog(source.open().intake, logOptions());
    const ended = new AbortController();
    const posting = (async () => {
      for (let index = 0; !ended.signal.aborted; index += 1)
        await log.append(post(groups[index % 3]!, `text ${index}`));
    })();
    const sizes: number[] = [];
    for (let round = 0; round < 5; round += 1) {
      const { bytes, written } = await takeBackup(source.target);
      const copy = await createTestDatabase({ empty: true });
      await loadBackup(copy.target, bytes);
      expect((await readWholeLog(copy)).length).toBe(written.manifest.rows['message']);
      sizes.push(written.manifest.rows['message']!);
      await copy.drop();
    }
    ended.abort();
    await posting;
    await log.stop();
    expect(sizes.at(-1)).toBeGreaterThan(sizes[0]!);
  });

  test('of an older schema is loaded as that and brought up to date', async () => {
    const [group] = await makeGroups(source, 1);
    const hook = await makeHook(source, group!);
    const { bytes, written } = await takeBackup(source.target);
    const known = readMigrations();
    expect(written.header).toMatchObject({ schema: known.length, migrations: known.map(({ name }) => name) });
    const version = known.length + 1;
    const later = {
      version,
      name: 'later',
      sqlText: 'alter table reverse_hook add column later int not null default 7',
    };
    const { appliedMigrations } = await loadBackup(target.target, bytes, sealer, [...known, later]);
    expect(appliedMigrations).toEqual([`${version} later`]);
    const rows = await target.query((sql) => sql`select id, later from reverse_hook`);
    expect(rows).toEqual([{ id: hook, later: 7 }]);
  });

  test('names the tables that are not of Klatch among what it leaves out', async () => {
    await source.query((sql) => sql`create table somebodys (a int)`);
    const { written } = await takeBackup(source.target);
    expect(written.header.left_out).toContainEqual({ table: 'somebodys', reason: 'not a table of Klatch' });
  });

  test('lets go of a table once it is copied, so that a day of the delivery log can be dropped meanwhile', async () => {
    await fill();
    const held = new Set<string>();
    const look = new Connection(source.target, 'test');
    try {
      await withSnapshot(
        source.target,
        { klatchVersion: '0', signal: new AbortController().signal },
        async ({ header, copy }) => {
          for (const table of header.tables) {
            for await (const _ of copy(table));
            const rows = await look.run(
              (sql) => sql<{ name: string }[]>`
                select relation::regclass::text as name from pg_locks l join pg_stat_activity a using (pid)
                where a.application_name = 'klatch backup' and a.datname = current_database() and relation in (
                  select oid from pg_class where relnamespace = 'public'::regnamespace)`,
              5_000,
            );
            for (const { name } of rows) held.add(name);
          }
        },
      );
    } finally {
      look.close();
    }
    expect([...held]).toEqual([]);
  });
});

describe('a restore', () => {
  test('refuses a database that holds something, and leaves it as it is', async () => {
    await fill();
    const { bytes } = await takeBackup(source.target);
    const before = await rowsOf(source, 'message');
    await expect(loadBackup(source.target, bytes)).rejects.toThrow(/^The database is not empty \(account, /);
    expect(await rowsOf(source, 'message')).toEqual(before);
    await target.query((sql) => sql`create table somebodys (a int)`);
    await expect(loadBackup(target.target, bytes)).rejects.toThrow('The database is not empty (somebodys).');
  });

  test('takes a database in which a Klatch was started and nothing was made for an empty one', async () => {
    await fill();
    const { bytes } = await takeBackup(source.target);
    const started = await createTestDatabase();
    try {
      await started.query((sql) =>
        createOrCheckCanary(sql, new Sealer('another secret, made by setup on the new machine')),
      );
      await loadBackup(started.target, bytes);
      expect(await rowsOf(started, 'message')).toEqual(await rowsOf(source, 'message'));
      expect(await started.query(describeSchema)).toBe(await source.query(describeSchema));
    } finally {
      await started.drop();
    }
  });

  test('refuses a secret that is not the one of the backup, and a database with a server at work', async () => {
    await fill();
    const { bytes } = await takeBackup(source.target);
    const other = new Sealer('another secret that is long enough');
    await expect(loadBackup(target.target, bytes, other)).rejects.toThrow(WrongSecretError);
    const server = new Connection(target.target, 'lease');
    try {
      await server.run((sql) => sql`select 1`, 5_000);
      await expect(loadBackup(target.target, bytes)).rejects.toThrow(DatabaseInUseError);
    } finally {
      server.close();
    }
    expect(await target.query(describeSchema)).toBe('');
  });

  test.each([
    [
      ['initial', 'delivery-control', 'nodes', 'people', 'push-files', 'activation-budgets', 'departures'],
      'This has the migration 1 initial, so a development build of Klatch before 0.1.0 made it, and this Klatch cannot ' +
        'load it: load it with that build, or start with an empty database.',
    ],
    [['others'], 'The migrations behind this are not those of Klatch: it comes from another program.'],
    [
      [...readMigrations().map(({ name }) => name), 'future'],
      `This is of schema ${newestSchemaVersion() + 1}, and this Klatch knows ${newestSchemaVersion()}: load it with the newer Klatch.`,
    ],
  ])('refuses a backup with the migrations %j and changes nothing', async (migrations, sentence) => {
    const { bytes } = await takeBackup(source.target);
    const other = await replaceHeader(bytes, { schema: migrations.length, migrations });
    await expect(loadBackup(target.target, other)).rejects.toThrow(new BackupError(sentence));
    expect(await target.query(describeSchema)).toBe('');
  });

  test('of rows that do not go together leaves the database empty and says which', async () => {
    await fill();
    // Without this unique index the source accepts two messages with one rev. The restored database has the index and
    // rejects them.
    await source.query((sql) => sql`drop index message_rev`);
    await source.query((sql) => sql`update message set rev = 1`);
    const { bytes } = await takeBackup(source.target);
    await expect(loadBackup(target.target, bytes)).rejects.toThrow(
      'The database did not take the rows of message (SQLSTATE 23505). Nothing was loaded.',
    );
    expect(await target.query(describeSchema)).toBe('');
  });
});
