import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { PostgresCluster, type PostgresNode } from '../support/postgres-cluster.ts';
import { eventually } from '../support/eventually.ts';
import { Receiver } from '../support/receiver.ts';
import { postJson, TestServer, type JsonAnswer, type TestGroup } from '../support/server.ts';

let cluster: PostgresCluster;
let primary: PostgresNode;
let standby: PostgresNode;
let receiver: Receiver;
let server: TestServer;
let group: TestGroup;

beforeEach(async () => {
  cluster = await PostgresCluster.start();
  [primary, standby] = cluster.nodes as [PostgresNode, PostgresNode];
  receiver = await Receiver.start();
  server = await TestServer.start({ limits: { intakeTimeoutMs: 120_000 } }, { database: cluster.asTestDatabase() });
  group = await server.createGroup();
  await postJson(`${group.webhook}/reverse`, { url: receiver.url() });
});
afterEach(async () => {
  await server.stop();
  await receiver.stop();
  await cluster.stop();
});

const ready = async (): Promise<number> => (await fetch(`${server.url}/v1/ready`)).status;

test('a planned switchover passes without a 503, and every message reaches the hook in order', async () => {
  const post = (): Promise<JsonAnswer> => postJson(group.webhook, { text: 'x' }, { 'idempotency-key': randomUUID() });
  // The first post has to look its token up, which has a time-out of its own.
  await eventually(post, ({ status }) => status === 200);
  await receiver.received(1);
  const answers: string[] = [];
  const traffic = { isOver: false };
  const call = async (): Promise<void> => {
    while (!traffic.isOver) {
      const { status, body } = await post();
      answers.push(`${status} ${status === 200 ? '' : body.message}`);
    }
  };
  const callers = Promise.all([call(), call(), call()]);
  await eventually(
    () => answers.length,
    (count) => count > 10,
  );
  await primary.stop();
  await eventually(ready, (status) => status === 503);
  await standby.promote();
  const promotedAt = answers.length;
  await eventually(
    () => answers.length,
    (count) => count > promotedAt + 10,
  );
  traffic.isOver = true;
  await callers;
  expect(new Set(answers)).toEqual(new Set(['200 ']));
  await eventually(ready, (status) => status === 200);
  const [head] = await server.database.query(
    (sql) => sql<{ seq: number }[]>`select last_seq as seq from conversation_head where conversation_id = ${group.id}`,
  );
  const last = head!.seq;
  expect(last).toBeGreaterThan(answers.length);
  await eventually(
    () => new Set(receiver.seqs()).size,
    (count) => count >= last,
  );
  // A take-over by the other node may repeat unsettled messages, but keeps their order: each new seq is the next one.
  const firsts = [...new Set(receiver.seqs())];
  expect(firsts).toEqual(Array.from({ length: last }, (_, index) => index + 1));
  const [lease] = await server.database.query((sql) => sql<{ epoch: number }[]>`select min(epoch) as epoch from lease`);
  expect(lease!.epoch).toBeGreaterThan(1_000);
});
