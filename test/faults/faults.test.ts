import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { MAX_UNSETTLED } from '../../src/delivery/lane.ts';
import { createTestDatabase } from '../support/database.ts';
import { DatabaseProxy } from '../support/database-proxy.ts';
import { ServerProcess } from '../support/server-process.ts';
import { eventually } from '../support/eventually.ts';
import { killServer, runFaults, type FaultReport } from './fault-load.ts';

const LOAD = { messages: 800, groups: 4, hooksPerGroup: 3, clients: 8 };

function expectNothingLost(report: FaultReport): void {
  expect(report).toMatchObject({ lost: 0, postedTwice: 0, outOfOrder: 0 });
  expect(report.maxRepeatsOfAHook).toBeLessThanOrEqual(report.faults * MAX_UNSETTLED);
}

async function postmasterPid(server: ServerProcess): Promise<number> {
  return Number((await readFile(join(server.dataDir, 'postgresql/postmaster.pid'), 'utf8')).split('\n')[0]);
}

/** Kills PostgreSQL; the server goes on, starts it again, and says so by being ready. */
async function killDatabase(server: ServerProcess): Promise<void> {
  const before = await postmasterPid(server);
  process.kill(before, 'SIGKILL');
  await eventually(
    () => postmasterPid(server).catch(() => before),
    (pid) => pid !== before,
    60_000,
  );
  await server.ready();
}

test('loses nothing, posts nothing twice and keeps the order over kills with -9 of the server', async () => {
  expectNothingLost(await runFaults({ ...LOAD, faults: 4, strike: killServer }));
}, 180_000);

test('the same over kills with -9 of its database, which the server starts again by itself', async () => {
  expectNothingLost(await runFaults({ ...LOAD, faults: 2, strike: killDatabase }));
}, 180_000);

test('the same over clean restarts in the middle of the load, which repeat nothing at all', async () => {
  const restart = async (server: ServerProcess): Promise<void> => {
    expect(await server.end('SIGTERM')).toBe(0);
    await server.start();
  };
  const report = await runFaults({ ...LOAD, faults: 2, strike: restart });
  expectNothingLost(report);
  expect(report.repeats).toBe(0);
}, 180_000);

test('the same while the path to the database swallows everything for a while', async () => {
  const database = await createTestDatabase();
  const proxy = await DatabaseProxy.start(database.target);
  const { host, port } = proxy.address;
  const { user, database: db } = database.target;
  const settings = `services.postgresql { embedded = false, host = "${host}", port = ${port}, user = ${user}, db = ${db} }`;
  const blackhole = async (server: ServerProcess): Promise<void> => {
    proxy.hold('both');
    await eventually(
      async () => (await fetch(`${server.url}/v1/ready`)).status,
      (status) => status === 503,
    );
    // What the proxy holds is lost with its connections, as when a firewall forgot them.
    proxy.abandon();
    await proxy.forward();
    await server.ready();
  };
  try {
    expectNothingLost(await runFaults({ ...LOAD, settings, faults: 2, strike: blackhole }));
  } finally {
    await proxy.stop();
    await database.drop();
  }
}, 180_000);
