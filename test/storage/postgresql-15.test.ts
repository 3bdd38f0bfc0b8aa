import { existsSync } from 'node:fs';
import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Database } from '../../src/storage/database.ts';
import { startEmbedded, type EmbeddedServer } from '../../src/storage/embedded/embedded.ts';
import { laneReport } from '../../src/storage/lane-report.ts';
import { claimPartitions } from '../../src/storage/leases.ts';
import { migrate } from '../../src/storage/migrate.ts';
import { MessageLog } from '../../src/storage/message-log.ts';
import { ensureAttemptPartitions } from '../../src/storage/retention.ts';
import type { HookId, Seq } from '../../src/model/ids.ts';
import { settle } from '../../src/storage/settlements.ts';
import { postgresqlConfig, type TestDatabase } from '../support/database.ts';
import { keyedPost, logOptions, makeGroups, makeHook, post, readWholeLog, UNTROUBLED } from './fixture.ts';
import { describeSchema } from './schema.ts';

/** Debian's; the other tests run on the newest PostgreSQL that comes with npm. */
const BIN_DIR = '/usr/lib/postgresql/15/bin';
const SNAPSHOT = fileURLToPath(new URL('schema.snapshot.txt', import.meta.url));

(existsSync(join(BIN_DIR, 'postgres')) ? describe : describe.skip)('on PostgreSQL 15', () => {
  let dataDir: string;
  let server: EmbeddedServer;
  let database: Database;
  let asTest: TestDatabase;

  beforeAll(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'klatch-test-15-'));
    await chmod(dataDir, 0o711);
    server = await startEmbedded({ dataDir, binDir: BIN_DIR, log: () => {}, settings: { fsync: 'off' } });
    const { socketDir: host, port, user } = server;
    const where = { host, port, user, database: server.database, password: '' };
    const target = { ...where, connectTimeoutMs: 2_000, lockTimeoutMs: 1_000 };
    database = new Database(target, postgresqlConfig);
    const query: TestDatabase['query'] = (work) => database.general.run(work);
    asTest = { target, open: () => database, query, drop: async () => {} };
  });
  afterAll(async () => {
    database.stop();
    await server.stop();
    await rm(dataDir, { recursive: true, force: true });
  });

  test('the migrations make the same schema', async () => {
    expect(server.version).toMatch(/^15\./);
    await migrate(database.intake);
    expect(await asTest.query(describeSchema)).toBe(await readFile(SNAPSHOT, 'utf8'));
  });

  test('the log stores what is posted, and keys hold', async () => {
    const groups = await makeGroups(asTest, 3);
    const log = new MessageLog(database.intake, logOptions({ flushPosts: 20 }));
    const posts = Array.from({ length: 60 }, (_, i) => post(groups[i % 3]!, i === 7 ? 'nul \u0000' : `${i}`));
    const endings = await Promise.allSettled(posts.map((p) => log.append(p)));
    expect(endings.filter(({ status }) => status === 'rejected')).toHaveLength(1);
    expect(await log.append(keyedPost(groups[0]!, 'k', 'one'))).toEqual({ outcome: 'new', seq: 21 });
    expect(await log.append(keyedPost(groups[0]!, 'k', 'one'))).toMatchObject({ outcome: 'repeat', seq: 21 });
    expect(await readWholeLog(asTest)).toHaveLength(60);
    await log.stop();
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
      attempt: 1,
      at,
      outcome: 'delivered' as const,
      category: null,
      code: 200,
      durationMs: 1,
    };
    const settlement = { hookId, generation: 0, epoch: 1, cursor: seq, ...UNTROUBLED, attempts: [record] };
    for (let i = 0; i < 2; i += 1) {
      expect(await database.settle.run((sql) => settle(sql, [settlement]))).toEqual(new Set([hookId]));
    }
    expect(await asTest.query((sql) => sql`select seq from delivery_attempt`)).toHaveLength(1);
    const report = await database.general.run((sql) => laneReport(sql, Date.now(), 1_000));
    expect(report.hooks).toEqual({ active: 1, failing: 0, parked: 0, paused: 0 });
  });
});
