import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { collectDatabaseFacts } from '../../src/doctor/database-facts.ts';
import { evaluateHostNames, evaluateReplication } from '../../src/doctor/replication.ts';
import { reportReplication, type ReplicationReport } from '../../src/storage/replication-report.ts';
import { testConfig } from '../support/config.ts';
import { eventually } from '../support/eventually.ts';
import { PostgresCluster, type PostgresNode } from '../support/postgres-cluster.ts';

const TIMEOUT_MS = 20_000;

let cluster: PostgresCluster;
let primary: PostgresNode;
let standbys: readonly PostgresNode[];
/** The process ids that a test suspended and that have to be resumed afterwards. */
const stopped: number[] = [];

beforeAll(async () => {
  cluster = await PostgresCluster.start({ servers: 3 });
  [primary, ...standbys] = cluster.nodes as [PostgresNode, ...PostgresNode[]];
});
afterAll(async () => {
  goOn();
  await cluster.stop();
});
afterEach(async () => {
  goOn();
  await primary.query((sql) => sql.unsafe('revoke pg_read_all_stats from klatch'));
  await primary.configure({ synchronous_standby_names: '' });
});

function goOn(): void {
  for (const pid of stopped.splice(0)) process.kill(pid, 'SIGCONT');
}

/** Stops the replication to a standby, which still answers queries. */
async function stopCopying(standby: PostgresNode): Promise<void> {
  const pid = await eventually(
    () => standby.query(async (sql) => (await sql<{ pid: number }[]>`select pid from pg_stat_wal_receiver`)[0]?.pid),
    (found) => found !== undefined,
  );
  process.kill(pid!, 'SIGSTOP');
  stopped.push(pid!);
}

async function write(): Promise<void> {
  await primary.query((sql) => sql.unsafe("select pg_logical_emit_message(true, 'x', repeat('x', 50000))"));
}

function report(order: readonly PostgresNode[] = cluster.nodes): Promise<ReplicationReport | null> {
  return reportReplication(cluster.target(order), TIMEOUT_MS);
}

/** Resolves when the standbys have the initial data of the cluster. */
async function untilCaughtUp(): Promise<ReplicationReport> {
  const found = await eventually(
    () => report(),
    (each) => each?.standbys === 2 && each.leastLag?.bytes === 0,
  );
  return found!;
}

test('replication that nobody waits for is a warning that says what a failover loses', async () => {
  expect(evaluateReplication(await untilCaughtUp())).toEqual([
    {
      level: 'warning',
      found:
        'replication is asynchronous: a failover would lose what the best of 2 standbys lacks, now 0 bytes (0.0 s)',
      todo: 'Set synchronous_mode in Patroni, or synchronous_standby_names in PostgreSQL (docs/cluster.md says what each costs).',
    },
  ]);
});

test('the standby that lacks least counts, as the standbys say', async () => {
  await untilCaughtUp();
  await stopCopying(standbys[0]!);
  await write();
  // The other standby gets the write at once, or after a moment.
  await untilCaughtUp();
  await stopCopying(standbys[1]!);
  await write();
  const { leastLag } = (await report())!;
  expect(leastLag!.bytes).toBeGreaterThan(50_000);
  expect(leastLag!.bytes).toBeLessThan(100_000);
});

test('a role that may see the statistics is told by the primary, where no other server is named', async () => {
  await untilCaughtUp();
  for (const standby of standbys) await stopCopying(standby);
  await write();
  expect((await report([primary]))!.leastLag).toBeNull();
  const unknown = evaluateReplication((await report([primary]))!);
  expect(unknown).toMatchObject([{ level: 'warning', todo: expect.stringContaining('grant pg_read_all_stats') }]);
  await primary.query((sql) => sql.unsafe('grant pg_read_all_stats to klatch'));
  expect((await report([primary]))!.leastLag!.bytes).toBeGreaterThan(50_000);
});

test('commits that wait for one of several standbys lose nothing, with a single one they can stand still', async () => {
  await untilCaughtUp();
  await primary.configure({ synchronous_standby_names: '*' });
  expect(evaluateReplication((await report())!)).toMatchObject([{ level: 'ok' }]);
  await standbys[1]!.stop();
  const one = await eventually(
    () => report(),
    (each) => each?.standbys === 1,
  );
  const [fine, single] = evaluateReplication(one!);
  expect(fine).toMatchObject({ level: 'ok' });
  expect(single).toMatchObject({ level: 'warning', found: expect.stringContaining('the only standby') });
  await standbys[1]!.start(primary);
  await untilCaughtUp();
  expect(evaluateReplication({ standbys: 0, synchronousStandbyNames: '*', leastLag: null })).toMatchObject([
    { level: 'error', found: expect.stringContaining('none follows') },
  ]);
});

test('a server without standbys, and a standby, are told nothing of', async () => {
  expect(evaluateReplication({ standbys: 0, synchronousStandbyNames: '', leastLag: null })).toEqual([]);
  expect(await report([standbys[0]!])).toBeNull();
});

test('the doctor tells it among what it says of the database', async () => {
  await untilCaughtUp();
  const { verdicts } = await collectDatabaseFacts(testConfig(cluster.target(), '/nowhere'), false);
  expect(verdicts).toContainEqual(
    expect.objectContaining({ level: 'warning', found: expect.stringContaining('replication is asynchronous') }),
  );
});

test('a name of several servers is a warning, one with an address of each kind is none', async () => {
  const addresses = { several: ['10.0.0.1', '10.0.0.2', '::1'], both: ['10.0.0.1', '::1'] };
  const find = async (name: string) =>
    addresses[name as keyof typeof addresses].map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
  const hosts = ['several', 'both', '10.0.0.1', '/run/postgresql', 'nowhere'];
  expect(await evaluateHostNames(hosts, find)).toEqual([
    {
      level: 'warning',
      found: 'several leads to 2 addresses, of which only one is asked: it may be a standby',
      todo: 'Give each server a name of its own, and list them all in services.postgresql.host.',
    },
  ]);
  expect(await evaluateHostNames(['localhost'])).toEqual([]);
});
