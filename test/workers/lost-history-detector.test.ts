import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { Log } from '../../src/log.ts';
import { LiveClient } from '../live/client.ts';
import { within } from '../run/machine-speed.ts';
import { eventually } from '../support/eventually.ts';
import { createPerson } from '../support/people.ts';
import { PostgresCluster, type PostgresNode } from '../support/postgres-cluster.ts';
import { Receiver } from '../support/receiver.ts';
import { postJson, TestServer, type TestGroup } from '../support/server.ts';
import { ServerProcess } from '../support/server-process.ts';

interface LogLine {
  readonly event: string;
  readonly fields: Record<string, unknown>;
  readonly atMs: number;
}

const NEW_TIMELINE = 'a new timeline of the database began';
const EPOCH_RAISED = 'the epoch of the log was raised';
const HISTORY_LOST = 'history was lost';
const settings = { limits: { intakeTimeoutMs: 120_000 }, metrics: { metricsEnabled: true } };

let cluster: PostgresCluster;
let primary: PostgresNode;
let standby: PostgresNode;
let receiver: Receiver;
const servers: TestServer[] = [];
const processes: ServerProcess[] = [];
const lines: LogLine[] = [];

beforeEach(async () => {
  cluster = await PostgresCluster.start();
  [primary, standby] = cluster.nodes as [PostgresNode, PostgresNode];
  receiver = await Receiver.start();
});
afterEach(async () => {
  for (const server of servers.splice(0)) await server.stop();
  for (const each of processes.splice(0)) await each.discard();
  await receiver.stop();
  await cluster.stop();
  lines.length = 0;
});

async function startServer(): Promise<TestServer> {
  const write = (event: string, fields: Record<string, unknown> = {}): void => {
    lines.push({ event, fields, atMs: performance.now() });
  };
  const log: Log = { debug: write, info: write, warn: write, error: write, child: () => log };
  const server = await TestServer.start(settings, { database: cluster.asTestDatabase(), log });
  servers.push(server);
  return server;
}

/** Starts the real program on the same database servers, with `server` first in its list. */
async function startProcess(server: PostgresNode): Promise<ServerProcess> {
  const node = await ServerProcess.create(
    processSettings([server, ...cluster.nodes.filter((each) => each !== server)]),
  );
  processes.push(node);
  await node.start();
  return node;
}

const processSettings = (nodes: readonly PostgresNode[]): string => `
  services.postgresql {
    embedded = false, host = [${nodes.map(({ port }) => `"127.0.0.1:${port}"`).join(', ')}]
    user = "klatch", db = "klatch", unsafe = true
  }
  services.file-storage.location = "${join(cluster.folder, 'files')}"`;

const logged = (begin: string): LogLine[] => lines.filter(({ event }) => event.startsWith(begin));

/** Posts until the server accepts the post. All attempts have one key, so that the message is written once. */
async function post(webhook: string, text: string): Promise<void> {
  await eventually(
    async () => (await postJson(webhook, { text }, { 'idempotency-key': text.replaceAll(' ', '-') })).status,
    (status) => status === 200,
  );
}

const texts = (): string[] => receiver.arrivals.map(({ body }) => body.data.message.text as string);

/** The epoch of the log, and the last decision of the nodes on a timeline. */
async function decision(node: PostgresNode): Promise<{ epoch: number; decided: string | null }> {
  const rows = await node.query(
    (sql) => sql<{ name: string; value: string }[]>`select name, value from setting`,
    'klatch',
  );
  const values = new Map(rows.map(({ name, value }) => [name, value]));
  return { epoch: Number(values.get('log_epoch') ?? '0'), decided: values.get('timeline_decision') ?? null };
}

const notices = async (node: PostgresNode): Promise<unknown[]> => {
  const rows = await node.query(
    (sql) => sql<{ details: unknown }[]>`select details from notice where kind = 'history_lost'`,
    'klatch',
  );
  return rows.map(({ details }) => details);
};

/** Kills the primary and promotes the standby, which lacks everything that was written since `stopReplication`. */
async function failOverToTheOldState(): Promise<void> {
  await primary.kill();
  await standby.start(primary);
  await standby.promote();
}

/** Stops the standby: from now on no server follows the primary. */
async function stopReplication(): Promise<void> {
  await cluster.untilCaughtUp(primary, standby);
  await standby.stop();
}

async function groupWithHook(server: TestServer): Promise<TestGroup> {
  const group = await server.createGroup();
  const { status } = await postJson(`${group.webhook}/reverse`, { url: receiver.url() });
  expect(status).toBe(201);
  return group;
}

test('a failover that lost messages raises the epoch once, is told, and keeps nobody from what comes after', async () => {
  const server = await startServer();
  const second = await startServer();
  const alice = await createPerson(server, 'alice');
  const group = await groupWithHook(server);
  await server.operate('groups.add-member', { group: group.id, user: 'alice' });
  const bob = await createPerson(server, 'bob');
  const unchangedGroup = await server.createGroup();
  await server.operate('groups.add-member', { group: unchangedGroup.id, user: 'bob' });
  await post(group.webhook, 'kept 1');
  await post(group.webhook, 'kept 2');
  await stopReplication();
  const client = await LiveClient.signIn(server.liveUrl, alice.token);
  await client.call('live.subscribe', { default: 'start' });
  // Bob's client is idle: his only conversation does not change, and no client of the second node follows any other
  // conversation.
  const idleClient = await LiveClient.signIn(second.liveUrl, bob.token);
  await idleClient.call('live.subscribe', { default: 'start' });
  await post(group.webhook, 'lost 3');
  await post(`${second.url}/v1/webhooks/${group.token}`, 'lost 4');
  await receiver.received(4);
  const had = await eventually(
    () => client.of('conversation.change').at(-1)?.params.rev as number,
    () => client.of('conversation.change').some(({ params }) => params.message?.seq === 4),
  );
  await failOverToTheOldState();
  await post(group.webhook, 'new 3');
  await post(group.webhook, 'new 4');
  await eventually(texts, (arrived) => arrived.includes('new 4'));
  expect([...new Set(texts())]).toEqual(['kept 1', 'kept 2', 'lost 3', 'lost 4', 'new 3', 'new 4']);

  const { epoch, decided } = await decision(standby);
  expect(epoch).toBeGreaterThan(1_000_000);
  expect(decided).toBe('2 raised');
  expect(logged(EPOCH_RAISED)).toHaveLength(1);
  await eventually(
    () => logged(HISTORY_LOST).length,
    (count) => count === 2,
  );
  expect(logged('changes of a conversation are lost')[0]!.fields).toEqual({
    conversation: group.id,
    knownSeq: 4,
    knownRev: expect.any(Number),
    lastSeq: 2,
    lastRev: had - 2,
  });
  expect(JSON.stringify(lines.map(({ event, fields }) => [event, fields]))).not.toContain('lost 3');
  await eventually(
    () => notices(standby),
    (found) => found.length > 0,
  );
  const metrics = await (await fetch(server.metricsUrl)).text();
  expect(metrics).toContain(`klatch_log_epoch ${epoch}\n`);
  expect(metrics).toContain('klatch_lost_history_conversations_total 1\n');

  // The server closes the connections of all clients that follow conversations, which then have to send their positions
  // (revs) again.
  await eventually(
    () => [client.code, idleClient.code],
    (codes) => codes.every((code) => code === 4008),
  );
  const again = await LiveClient.signIn(server.liveUrl, alice.token);
  await again.call('live.subscribe', { since: { [group.id]: had - 2 } });
  await eventually(
    () => again.of('conversation.change').flatMap(({ params }) => (params.message?.text as string | undefined) ?? []),
    (seen) => seen.includes('new 4') && seen.includes('new 3'),
  );

  await server.restart();
  await second.restart();
  await post(`${server.url}/v1/webhooks/${group.token}`, 'after restarts');
  expect(await decision(standby)).toEqual({ epoch, decided });
  expect(await notices(standby)).toEqual([{ epoch, first_lost_seq: 3, last_lost_seq: 4 }]);
  expect(logged(HISTORY_LOST)).toHaveLength(2);
});

test('a failover that lost nothing raises nothing, and no client is sent away', async () => {
  const server = await startServer();
  await startServer();
  const alice = await createPerson(server, 'alice');
  const group = await groupWithHook(server);
  await server.operate('groups.add-member', { group: group.id, user: 'alice' });
  const client = await LiveClient.signIn(server.liveUrl, alice.token);
  await client.call('live.subscribe', { default: 'start' });
  await post(group.webhook, 'before');
  await primary.stop();
  await standby.promote();
  await post(group.webhook, 'after');
  await eventually(texts, (arrived) => arrived.includes('after'));
  await eventually(
    () => logged(NEW_TIMELINE).length,
    (count) => count >= 2,
  );
  await eventually(
    () => client.of('conversation.change').some(({ params }) => params.message?.text === 'after'),
    Boolean,
  );
  expect(await decision(standby)).toEqual({ epoch: 0, decided: '2 confirmed' });
  expect(await notices(standby)).toEqual([]);
  expect(logged(HISTORY_LOST)).toEqual([]);
  expect(client.code).toBeNull();
});

test('a primary of an older timeline is refused with what to do, and a restart accepts it and tells what it lost', async () => {
  const server = await startServer();
  const group = await groupWithHook(server);
  await post(group.webhook, 'kept 1');
  await cluster.untilCaughtUp(primary, standby);
  await primary.kill();
  await standby.promote();
  await post(group.webhook, 'lost 2');
  await receiver.received(2);
  await standby.kill();
  await primary.start();
  const advice = 'if no server of timeline 2 is left, restart Klatch, which then says what the database lost';
  await eventually(
    () => server.operate<{ database_servers: unknown }>('server.status'),
    (status) => JSON.stringify(status.database_servers).includes(`it is on timeline 1, and 2 has begun; ${advice}`),
  );
  await server.restart();
  await post(`${server.url}/v1/webhooks/${group.token}`, 'new 2');
  await eventually(texts, (arrived) => arrived.includes('new 2'));
  expect([...new Set(texts())]).toEqual(['kept 1', 'lost 2', 'new 2']);
  expect(logged('changes of a conversation are lost')[0]!.fields).toMatchObject({ knownSeq: 2, lastSeq: 1 });
  const { epoch } = await decision(primary);
  expect(epoch).toBeGreaterThan(1_000_000);
  await eventually(
    () => notices(primary),
    (found) => found.length > 0,
  );
  expect(await notices(primary)).toEqual([{ epoch, first_lost_seq: 2, last_lost_seq: 2 }]);
});

test("a manager's restart of the primary in its place raises nothing, though a new timeline begins", async () => {
  const server = await startServer();
  const group = await groupWithHook(server);
  await post(group.webhook, 'before');
  await standby.stop();
  await primary.kill();
  await primary.start(standby);
  await primary.promote();
  await post(group.webhook, 'after');
  await eventually(
    () => decision(primary),
    ({ decided }) => decided === '2 confirmed',
  );
  expect(await decision(primary)).toMatchObject({ epoch: 0 });
  expect(await notices(primary)).toEqual([]);
});

test('a node that says nothing in a new timeline is waited for for 3 s, and then the epoch is raised', async () => {
  const server = await startServer();
  const group = await server.createGroup();
  await post(group.webhook, 'before');
  await primary.query(
    (sql) => sql`
      insert into node (id, expires_at, compared_timeline, finding)
      values ('silent', clock_timestamp() - interval '1 hour', 1, 'complete')`,
    'klatch',
  );
  await cluster.untilCaughtUp(primary, standby);
  await primary.stop();
  await standby.promote();
  await post(group.webhook, 'after');
  const [raised] = logged(EPOCH_RAISED);
  expect(raised!.fields).toMatchObject({ timeline: 2, silentNodes: ['silent'] });
  const waitedMs = raised!.atMs - logged(NEW_TIMELINE).at(-1)!.atMs;
  expect(waitedMs).toBeGreaterThanOrEqual(2_990);
  expect(waitedMs).toBeLessThan(within(5_000));
  const { epoch, decided } = await decision(standby);
  expect(decided).toBe('2 raised');
  expect(epoch).toBeGreaterThan(0);
  expect(await notices(standby)).toEqual([]);
});

test('a node that was killed with the newest witness finds the loss at its start, though other messages have the numbers', async () => {
  const killed = await startProcess(primary);
  const token = await groupOf(killed);
  const webhook = `${killed.url}/v1/webhooks/${token}`;
  await post(webhook, 'kept 1');
  await stopReplication();
  await post(webhook, 'lost 2');
  await post(webhook, 'lost 3');
  await eventually(
    () => witnessedMoments(killed),
    ([seq, sentAtMs]) => seq === 3 && sentAtMs! > 0,
  );
  await killed.end('SIGKILL');
  await failOverToTheOldState();
  const other = await startServer();
  for (const text of ['new 2', 'new 3', 'new 4']) await post(`${other.url}/v1/webhooks/${token}`, text);
  // The killed node was in the list of nodes and reported no finding.
  const before = await decision(standby);
  expect(before).toEqual({ epoch: expect.any(Number), decided: '2 raised' });
  await killed.start();
  const line = await eventually(
    () => killed.lines.find((each) => each.includes('changes of a conversation are lost')),
    (found) => found !== undefined,
  );
  expect(JSON.parse(line!)).toMatchObject({ knownSeq: 3, lastSeq: 4 });
  expect(await decision(standby)).toEqual(before);
  await eventually(
    () => notices(standby),
    (found) => found.length === 1,
  );
});

async function groupOf(node: ServerProcess): Promise<string> {
  const { webhook } = await node.operate<{ webhook: string }>('groups.create', { title: 'Lobby' });
  return webhook.split('/').at(-1)!;
}

/** The newest seq of the only conversation, and its time, from the witness file of the node. */
async function witnessedMoments({ dataDir }: ServerProcess): Promise<readonly number[]> {
  const text = await readFile(join(dataDir, 'witness.json'), 'utf8').catch(() => '{"heads":[]}');
  const { heads } = JSON.parse(text) as { heads: number[][] };
  return heads[0]?.slice(1, 3) ?? [];
}
