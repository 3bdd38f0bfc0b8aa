import { existsSync } from 'node:fs';
import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { readChanges } from '../../../src/storage/messages/changes.ts';
import { Database } from '../../../src/storage/database.ts';
import { indexNext } from '../../../src/storage/messages/indexing.ts';
import { startEmbedded, type EmbeddedServer } from '../../../src/storage/embedded/embedded.ts';
import { readLaneReport } from '../../../src/storage/hooks/lane-report.ts';
import { claimPartitions } from '../../../src/storage/hooks/leases.ts';
import { migrate } from '../../../src/storage/db/migrate.ts';
import { silentLog } from '../../../src/log.ts';
import { eraseMessage, lockHeadAndReadMessage } from '../../../src/storage/messages/messages.ts';
import { MessageLog } from '../../../src/storage/messages/message-log.ts';
import { advanceReadPosition } from '../../../src/storage/messages/read-positions.ts';
import { searchMessagesByWords } from '../../../src/storage/messages/search.ts';
import { ensureAttemptPartitions } from '../../../src/storage/retention/retention.ts';
import type { AccountId, HookId, Rev, Seq } from '../../../src/model/ids.ts';
import { PushStage } from '../../push/stage.ts';
import { postgresqlConfig } from '../../support/config.ts';
import { type TestDatabase } from '../../support/database.ts';
import { eventually } from '../../support/eventually.ts';
import {
  keyedPost,
  logOptions,
  makeGroups,
  makeHook,
  makeMembers,
  post,
  readWholeLog,
  UNTROUBLED,
  type StoredGroup,
} from '../fixture.ts';
import { describeSchema } from '../schema.ts';

/** The folder of Debian's PostgreSQL programs. The other tests run on the newest PostgreSQL from npm. */
const BIN_DIR = '/usr/lib/postgresql/15/bin';
const SNAPSHOT = fileURLToPath(new URL('../schema.snapshot.txt', import.meta.url));

(existsSync(join(BIN_DIR, 'postgres')) ? describe : describe.skip)('on PostgreSQL 15', () => {
  let dataDir: string;
  let server: EmbeddedServer;
  let database: Database;
  let asTest: TestDatabase;

  beforeAll(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'klatch-test-15-'));
    await chmod(dataDir, 0o711);
    server = await startEmbedded({ dataDir, binDir: BIN_DIR, log: () => {}, serverSettings: { fsync: 'off' } });
    const { socketDir: host, port, user } = server;
    const where = { host, port, user, database: server.database, password: '' };
    const target = { ...where, connectTimeoutMs: 2_000, lockTimeoutMs: 1_000 };
    database = new Database(target, postgresqlConfig, silentLog());
    const query: TestDatabase['query'] = (work) => database.general.run(work);
    asTest = { target, filesFolder: join(dataDir, 'files'), open: () => database, query, drop: async () => {} };
  });
  afterAll(async () => {
    await database.stop();
    await server.stop();
    await rm(dataDir, { recursive: true, force: true });
  });

  test('the migrations make the same schema', async () => {
    expect(server.postgresqlVersion).toMatch(/^15\./);
    await migrate(database.intake);
    expect(await asTest.query(describeSchema)).toBe(await readFile(SNAPSHOT, 'utf8'));
  });

  test('the log stores what is posted, and keys hold', async () => {
    const groups = await makeGroups(asTest, 3);
    const log = new MessageLog(database.intake, logOptions({ maxFlushPosts: 20 }));
    const posts = Array.from({ length: 60 }, (_, i) => post(groups[i % 3]!, i === 7 ? 'nul \u0000' : `${i}`));
    const endings = await Promise.allSettled(posts.map((p) => log.append(p)));
    expect(endings.filter(({ status }) => status === 'rejected')).toHaveLength(1);
    expect(await log.append(keyedPost(groups[0]!, 'k', 'one'))).toEqual({ outcome: 'new', seq: 21, logEpoch: 0 });
    expect(await log.append(keyedPost(groups[0]!, 'k', 'one'))).toMatchObject({ outcome: 'repeat', seq: 21 });
    expect(await readWholeLog(asTest)).toHaveLength(60);
    await log.stop();
  });

  test('members post, edit and delete, and what they wrote is found in any script and read by its changes', async () => {
    const [group] = (await makeGroups(asTest, 1)) as [StoredGroup];
    const [alice, bob] = (await makeMembers(asTest, group, ['alice', 'bob'])) as [AccountId, AccountId];
    const log = new MessageLog(database.intake, logOptions());
    const by = { admission: null, senderId: alice };
    await log.append(post(group, 'Привет @BOB', by));
    await log.append({ ...keyedPost(group, 'k', 'Übermut'), ...by });
    const gone = await log.append(post(group, 'привет, gone', by));
    await log.stop();
    const seq = (gone as { seq: Seq }).seq;
    await database.general.transaction(async (tx) => {
      await lockHeadAndReadMessage(tx, { conversationId: group.id, seq, accountId: alice });
      await eraseMessage(tx, { conversationId: group.id, seq, actorId: alice, hops: 0 });
    });
    expect(await indexNext(database.general, group.id)).toEqual({ acquired: true, messages: 3, more: false });
    expect(await asTest.query((sql) => sql`select account_id from mention`)).toEqual([{ account_id: bob }]);
    const search = { accountId: bob, conversationId: null, before: null, limit: 10, maxBytes: 1_000 };
    for (const text of ['ПРИВЕТ', 'übermut']) {
      expect((await searchMessagesByWords(database.search, { ...search, text }))?.found).toHaveLength(1);
    }
    const request = { conversationId: group.id, afterRev: 0 as Rev, limit: 10, maxBytes: 1_000 };
    const page = await database.live.run((sql) => readChanges(sql, request));
    expect(page).toMatchObject({ rev: 4, more: false, changes: [{ rev: 1 }, { rev: 2 }, { rev: 4 }] });
    const moved = await database.general.run((sql) =>
      advanceReadPosition(sql, { conversationId: group.id, accountId: bob }, 2 as Seq),
    );
    expect(moved).toEqual({ seq: 2, moved: true });
  });

  test('settlements, leases and the delivery log work', async () => {
    const [group] = await makeGroups(asTest, 1);
    const hookId: HookId = await makeHook(asTest, group!);
    await database.general.transaction((tx) => ensureAttemptPartitions(tx, Date.now()));
    expect(await database.lease.run((sql) => claimPartitions(sql, { holder: 'us', leaseMs: 10_000 }))).toHaveLength(64);
    const seq = 1 as Seq;
    const at = new Date();
    const record = {
      firstSeq: seq,
      lastSeq: seq,
      rev: 0 as const,
      lastRev: null,
      attempt: 1,
      at,
      outcome: 'delivered' as const,
      category: null,
      code: 200,
      durationMs: 1,
    };
    const settlement = { hookId, generation: 0, epoch: 1, cursor: seq, ...UNTROUBLED, attempts: [record] };
    for (let i = 0; i < 2; i += 1) {
      expect(await database.settle.write([settlement])).toEqual(new Set([hookId]));
    }
    expect(await asTest.query((sql) => sql`select seq from delivery_attempt`)).toHaveLength(1);
    const report = await database.general.run((sql) => readLaneReport(sql, Date.now(), 1_000));
    expect(report.hooks).toEqual({ active: 1, failing: 0, parked: 0, paused: 0 });
  });

  test('pushes are fanned out, claimed, tried again, collapsed, settled and withdrawn', async () => {
    const stage = await PushStage.open(asTest);
    try {
      const [carol, dave] = (await stage.members('carol', 'dave')) as [AccountId, AccountId];
      for (const [account, kind] of [
        [carol, 'google'],
        [carol, 'web'],
        [dave, 'apple'],
      ] as const) {
        await stage.device(account, kind);
      }
      stage.service('apple').answer = () => 429;
      stage.service('google').answer = () => 410;
      stage.start();
      await stage.post('first');
      await eventually(
        () => stage.pending(),
        (rows) => rows.length === 1 && rows[0]!.attempts > 0,
      );
      const last = await stage.post('second, of carol', carol);
      await stage.setForeground(last);
      stage.service('apple').answer = () => 200;
      await stage.settled(last);
      expect(stage.got('web').map(({ note }) => note.text)).toEqual(['Sender 0: first']);
      expect(stage.got('apple').at(-1)!.note.text).toContain('second, of carol');
      expect(await stage.logged()).toContainEqual(expect.objectContaining({ account: carol, kind: 'google' }));
      stage.service('apple').answer = () => 429;
      const unread = await stage.post('third');
      await stage.waits(1);
      await stage.read(dave, unread);
      await stage.settled(unread);
    } finally {
      await stage.close();
    }
  });
});
