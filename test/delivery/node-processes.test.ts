import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { MAX_UNSETTLED_ATTEMPTS } from '../../src/delivery/lane.ts';
import { PARTITIONS } from '../../src/storage/hooks/lanes.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { within } from '../run/machine-speed.ts';
import { Receiver } from '../support/receiver.ts';
import { postJson } from '../support/server.ts';
import { ServerProcess } from '../support/server-process.ts';

/** The promised time in which a dead or frozen node is replaced, plus the time that this machine may add. */
const REPLACED_MS = 15_000 + 8_000;
const HOOKS = 16;

let database: TestDatabase;
let receiver: Receiver;
let nodes: ServerProcess[];

beforeEach(async () => {
  database = await createTestDatabase();
  receiver = await Receiver.start();
  nodes = [];
});
afterEach(async () => {
  for (const node of nodes) {
    await node.discard();
  }
  await receiver.stop();
  await database.drop();
});

async function startNode(): Promise<ServerProcess> {
  const { host, port, user, database: db } = database.target;
  const node = await ServerProcess.create(`
    services.postgresql { embedded = false, host = "${host}", port = ${port}, user = "${user}", db = "${db}", unsafe = true }
    services.file-storage.location = "${database.filesFolder}"
    services.postgresql.flush-timeout = 20s
    delivery.retry = [300ms]
    limits.hook-registrations-per-minute = 1000`);
  nodes.push(node);
  await node.start();
  return node;
}

const idOf = async (node: ServerProcess): Promise<string> =>
  (await readFile(join(node.dataDir, 'node-id'), 'utf8')).trim();

/** The partitions that a node holds in the database. */
async function partitionsOf(node: ServerProcess): Promise<Set<number>> {
  const id = await idOf(node);
  const rows = await database.query(
    (sql) => sql<{ partition: number }[]>`select partition::int as partition from lease where holder = ${id}`,
  );
  return new Set(rows.map(({ partition }) => partition));
}

/** The remaining time of the leases of a node in ms, unless it renews them. */
async function leaseMs(node: ServerProcess): Promise<number> {
  const id = await idOf(node);
  const [row] = await database.query(
    (sql) => sql<{ ms: number }[]>`
      select extract(epoch from max(expires_at) - clock_timestamp())::float8 * 1000 as ms from lease where holder = ${id}`,
  );
  return row!.ms;
}

/**
 * Starts two servers on one database, each with half of the partitions, and creates a group with hooks in many of them.
 */
async function twoNodes(): Promise<{ a: ServerProcess; b: ServerProcess; webhook: string; hooks: number[] }> {
  const a = await startNode();
  const b = await startNode();
  for (const node of nodes) {
    await eventually(
      () => partitionsOf(node),
      (held) => held.size === PARTITIONS / 2,
    );
  }
  const { token } = await a.createGroup('Lobby');
  const webhook = `${b.url}/v1/webhooks/${token}`;
  const hooks: number[] = [];
  for (let n = 0; n < HOOKS; n += 1) {
    hooks.push((await postJson(`${webhook}/reverse`, { url: receiver.url(`/${n}`) })).body.id as number);
  }
  return { a, b, webhook, hooks };
}

/** Posts one message after the other until `stop`, which resolves to their number. */
function postAll(webhook: string): { stop(): Promise<number> } {
  const ended = new AbortController();
  const posting = (async () => {
    let count = 0;
    for (; !ended.signal.aborted; count += 1) {
      expect((await postJson(webhook, { text: `message ${count}` })).status).toBe(200);
    }
    return count;
  })();
  return {
    stop: () => {
      ended.abort();
      return posting;
    },
  };
}

/** The seqs that arrived at a path, in the order of their first arrival, and the number of repeats. */
function arrivalsOf(path: string): { first: number[]; repeats: number } {
  const all = receiver.seqs(path);
  const first = [...new Set(all)];
  return { first, repeats: all.length - first.length };
}

async function everythingArrived(count: number, promisedMs: number): Promise<void> {
  const startedAt = performance.now();
  await eventually(
    async () => Math.min(...Array.from({ length: HOOKS }, (_, n) => arrivalsOf(`/${n}`).first.length)),
    (least) => least >= count,
  );
  expect(performance.now() - startedAt).toBeLessThan(within(promisedMs));
}

function expectInOrder(count: number, maxRepeats: number): void {
  for (let n = 0; n < HOOKS; n += 1) {
    const { first, repeats } = arrivalsOf(`/${n}`);
    expect(first).toEqual(Array.from({ length: count }, (_, i) => i + 1));
    expect(repeats).toBeLessThanOrEqual(maxRepeats);
  }
}

/** Returns one of these hooks whose lane runs on the node. */
const hookOf = async (node: ServerProcess, hooks: readonly number[]): Promise<number> => {
  const held = await partitionsOf(node);
  return hooks.find((id) => held.has(id % PARTITIONS))!;
};

describe('a node that', () => {
  test('is killed with -9 under load is replaced within 15 s: nothing is lost or overtaken', async () => {
    const { a, webhook } = await twoNodes();
    const posts = postAll(webhook);
    await receiver.received(20 * HOOKS);
    await a.end('SIGKILL');
    const count = await posts.stop();
    await everythingArrived(count, REPLACED_MS);
    expectInOrder(count, MAX_UNSETTLED_ATTEMPTS);
  });

  test('freezes under load is replaced within 15 s, and does no harm when it wakes', async () => {
    const { a, b, webhook } = await twoNodes();
    let posts = postAll(webhook);
    await receiver.received(20 * HOOKS);
    process.kill(a.pid, 'SIGSTOP');
    let count = await posts.stop();
    await everythingArrived(count, REPLACED_MS);
    // The frozen node continues with all its former work, while more posts arrive.
    posts = postAll(webhook);
    process.kill(a.pid, 'SIGCONT');
    await eventually(
      () => partitionsOf(a),
      (held) => held.size === PARTITIONS / 2,
    );
    expect((await partitionsOf(b)).size).toBe(PARTITIONS / 2);
    count += await posts.stop();
    await everythingArrived(count, REPLACED_MS);
    // Two kinds of requests may be repeated:
    // - those that were unsettled at the freeze
    // - the attempt that was about to start and that the kernel held
    expectInOrder(count, MAX_UNSETTLED_ATTEMPTS + 1);
  });

  test('freezes holds up the answer to a deletion until its lease has ended, and sends nothing of it when it wakes', async () => {
    const { a, webhook, hooks } = await twoNodes();
    receiver.answer = () => 500;
    await postJson(webhook, { text: 'nobody takes this' });
    await receiver.received(3 * HOOKS);
    const hook = await hookOf(a, hooks);
    const path = `/${hooks.indexOf(hook)}`;
    process.kill(a.pid, 'SIGSTOP');
    // The lease must have little time left. Otherwise the answer to the deletion could come from the time-out of the
    // request.
    const { leftMs, at: startedAt } = await eventually(
      async () => ({ at: performance.now(), leftMs: await leaseMs(a) }),
      (lease) => lease.leftMs < 4_000,
    );
    expect((await fetch(`${webhook}/reverse/${hook}`, { method: 'DELETE' })).status).toBe(202);
    expect(performance.now() - startedAt).toBeGreaterThan(leftMs - 500);
    expect(performance.now() - startedAt).toBeLessThan(within(9_500));
    const before = receiver.seqs(path).length;
    process.kill(a.pid, 'SIGCONT');
    await eventually(
      () => partitionsOf(a),
      (held) => held.size === PARTITIONS / 2,
    );
    // Every other hook gets three more attempts, and the deleted one gets none.
    const others = hooks.filter((id) => id !== hook).length;
    await receiver.received(receiver.arrivals.length + 3 * others);
    expect(receiver.seqs(path)).toHaveLength(before);
  });

  test('wakes refuses a token at once that was rotated while it was frozen', async () => {
    const [a, b] = [await startNode(), await startNode()];
    const { id, token } = await a.createGroup('Lobby');
    const onB = `${b.url}/v1/webhooks/${token}`;
    expect((await postJson(onB, { text: 'before' })).status).toBe(200);
    process.kill(b.pid, 'SIGSTOP');
    await a.operate('groups.rotate-token', { group: id });
    const answers = Promise.all([
      postJson(onB, { text: 'after' }),
      postJson(onB, { text: '' }),
      fetch(`${onB}/reverse`),
    ]);
    process.kill(b.pid, 'SIGCONT');
    expect((await answers).map(({ status }) => status)).toEqual([404, 404, 404]);
  });
});
