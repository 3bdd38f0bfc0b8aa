import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { collectDatabaseFacts } from '../../../src/doctor/database-facts.ts';
import { silentLog } from '../../../src/log.ts';
import { Connection } from '../../../src/storage/db/connection.ts';
import { requireSessionPooling, TransactionPoolingError } from '../../../src/storage/db/pooler.ts';
import { openDatabase } from '../../../src/storage/open-database.ts';
import { testConfig } from '../../support/config.ts';
import { isPgbouncerInstalled, Pgbouncer } from '../../support/pgbouncer.ts';
import { PostgresCluster } from '../../support/postgres-cluster.ts';
import { Receiver } from '../../support/receiver.ts';
import { postJson, TestServer } from '../../support/server.ts';

const POSTS = 20;
let cluster: PostgresCluster;
const opened: { stop(): Promise<void> }[] = [];

beforeAll(async () => {
  cluster = await PostgresCluster.start({ servers: 1 });
});
afterAll(() => cluster.stop());
afterEach(async () => {
  for (const each of opened.splice(0).reverse()) await each.stop();
});

async function start(settings: Readonly<Record<string, string | number>>): Promise<Pgbouncer> {
  const pooler = await Pgbouncer.start(cluster.nodes[0]!.target, settings);
  opened.push(pooler);
  return pooler;
}

test('a server without a pooler is taken as it is', async () => {
  await expect(requireSessionPooling(cluster.target(), 20_000)).resolves.toBeUndefined();
});

(isPgbouncerInstalled ? describe : describe.skip)('behind pgbouncer', () => {
  test('in session mode two servers work and hear each other, with no settings but the mode', async () => {
    const { target } = await start({ pool_mode: 'session', default_pool_size: 60 });
    const database = { ...cluster.asTestDatabase(), target };
    const receiver = await Receiver.start();
    opened.push(receiver);
    const servers: TestServer[] = [];
    for (let n = 0; n < 2; n += 1) {
      const server = await TestServer.start({}, { database });
      opened.push(server);
      servers.push(server);
    }
    const group = await servers[0]!.createGroup();
    await postJson(`${group.webhook}/reverse`, { url: receiver.url() });
    for (let n = 0; n < POSTS; n += 1) {
      const webhook = `${servers[n % 2]!.url}/v1/webhooks/${group.token}`;
      expect(await postJson(webhook, { text: `post ${n}` })).toMatchObject({ status: 200 });
    }
    await receiver.received(POSTS);
    expect(receiver.seqs()).toEqual(Array.from({ length: POSTS }, (_, n) => n + 1));
  });

  test('in session mode a session has our settings', async () => {
    const { target } = await start({ pool_mode: 'session' });
    const connection = new Connection({ ...target, lockTimeoutMs: 123 }, 'test');
    const ask = connection.run(
      (sql) => sql`
        select current_setting('lock_timeout') as lock, current_setting('timezone') as zone,
          current_setting('idle_in_transaction_session_timeout') as idle`,
      20_000,
    );
    expect(await ask).toEqual([{ lock: '123ms', zone: 'UTC', idle: '30s' }]);
    connection.close();
    await expect(requireSessionPooling(target, 20_000)).resolves.toBeUndefined();
  });

  test.each([
    ['the last session first', 0],
    ['all in turn', 1],
  ])(
    'transaction mode, %s, is refused at the start in a sentence that says what to do',
    async (_, server_round_robin) => {
      const { target } = await start({ pool_mode: 'transaction', server_round_robin });
      const config = testConfig(target, '/nowhere');
      const refusal = await openDatabase(config, { sealer: null, log: silentLog() }).catch((error: unknown) => error);
      expect(refusal).toBeInstanceOf(TransactionPoolingError);
      expect((refusal as Error).message).toMatch(
        /^A pooler in transaction mode .* Set pool_mode = session in pgbouncer/,
      );
      const { verdicts } = await collectDatabaseFacts(config, false);
      expect(verdicts).toMatchObject([
        { level: 'error', found: expect.stringContaining('A pooler in transaction mode') },
      ]);
    },
  );
});
