import { once } from 'node:events';
import { connect } from 'node:net';
import { afterEach, describe, expect, test } from '@jest/globals';
import { lockHead } from '../storage/fixture.ts';
import type { ConversationId } from '../../src/model/ids.ts';
import type { ConfigChanges } from '../support/config.ts';
import { eventually } from '../support/eventually.ts';
import { Receiver, type Answerer } from '../support/receiver.ts';
import { postJson, TestServer, type TestGroup } from '../support/server.ts';
import { freePort } from '../support/ports.ts';
import { scrape, type Scrape } from './scrape.ts';

let server: TestServer;
const receivers: Receiver[] = [];
afterEach(async () => {
  await server.stop();
  for (const receiver of receivers.splice(0)) await receiver.stop();
});

async function start(changes: ConfigChanges = {}): Promise<TestGroup> {
  const delivery = { retryDelaysMs: [30], allow: ['loopback', '*.invalid'], ...changes.delivery };
  server = await TestServer.start({ metrics: { metricsEnabled: true }, ...changes, delivery });
  return server.createGroup('Group with a title');
}

async function receive(answer?: Answerer): Promise<Receiver> {
  const receiver = await Receiver.start(answer);
  receivers.push(receiver);
  return receiver;
}

const read = (): Promise<Scrape> => scrape(server.metricsUrl);
const until = (right: (found: Scrape) => boolean): Promise<Scrape> => eventually(read, right);
const unknown = (): string => `${server.url}/v1/webhooks/${'x'.repeat(43)}`;

async function register(group: TestGroup, url: string): Promise<void> {
  expect((await postJson(`${group.webhook}/reverse`, { url })).status).toBe(201);
}

describe('posts', () => {
  test('count by outcome, in commits with their size and duration', async () => {
    const group = await start();
    const key = { 'idempotency-key': 'once' };
    for (const headers of [{}, key, key]) await postJson(group.webhook, { text: 'text' }, headers);
    await Promise.all(Array.from({ length: 20 }, () => postJson(group.webhook, { text: 'together' })));
    const found = await read();
    expect(found.value('klatch_intake_posts_total', { outcome: 'new' })).toBe(22);
    expect(found.value('klatch_intake_posts_total', { outcome: 'repeat' })).toBe(1);
    const commits = found.value('klatch_intake_commits_total');
    expect(commits).toBeGreaterThanOrEqual(4);
    expect(found.value('klatch_intake_commit_posts_count')).toBe(commits);
    expect(found.value('klatch_intake_commit_posts_sum')).toBe(23);
    expect(found.value('klatch_intake_commit_duration_seconds_count')).toBe(commits);
    expect(found.value('klatch_intake_commit_duration_seconds_sum')).toBeGreaterThan(0);
    expect(found.value('klatch_intake_queue_posts')).toBe(0);
  });

  test.each<[string, ConfigChanges, (group: TestGroup) => Promise<unknown>]>([
    ['invalid_token', {}, () => postJson(unknown(), { text: 'x' })],
    ['invalid_input', {}, ({ webhook }) => postJson(webhook, { text: '' })],
    ['hop_limit', {}, ({ webhook }) => postJson(webhook, { text: 'x' }, { 'klatch-hops': '3' })],
    ['too_large', { http: { maxBodyBytes: 1_024 } }, ({ webhook }) => postJson(webhook, { text: 'x'.repeat(2_000) })],
    [
      'idempotency_key_reused',
      {},
      async ({ webhook }) => {
        for (const text of ['one', 'two']) await postJson(webhook, { text }, { 'idempotency-key': 'k' });
      },
    ],
    [
      'token_rate_limited',
      { limits: { postsPerSecondPerToken: 0.01, postBurstPerToken: 1, tokenQueueTimeoutMs: 0 } },
      async ({ webhook }) => {
        for (const text of ['one', 'two']) await postJson(webhook, { text });
      },
    ],
    [
      'group_archived',
      {},
      async ({ id, webhook }) => {
        await server.database.query(
          (sql) => sql`update conversation_head set archived_at = now() where conversation_id = ${id}`,
        );
        await postJson(webhook, { text: 'x' });
      },
    ],
    ['not_found', {}, () => fetch(`${server.url}/elsewhere`)],
  ])('that are refused count by the reason: %s', async (reason, changes, refuse) => {
    const group = await start(changes);
    await refuse(group);
    const refused = await until((found) => found.value('klatch_http_errors_total', { code: reason }) === 1);
    const others = refused.series.filter(({ name, value }) => name === 'klatch_http_errors_total' && value > 0);
    expect(others.map(({ labels }) => labels['code'])).toEqual([reason]);
    expect(refused.value('klatch_unknown_tokens_total')).toBe(reason === 'invalid_token' ? 1 : 0);
  });

  test('that are refused for what they hold count by the format that they were read as, and no others do', async () => {
    const group = await start();
    for (const body of [{ text: '' }, { attachments: [{}] }, { attachments: [{}] }])
      await postJson(group.webhook, body);
    await postJson(unknown(), { text: '' });
    await postJson(group.webhook, { text: 'fine' });
    const found = await until((all) => all.value('klatch_refused_posts_total', { format: 'slack' }) === 2);
    const counted = found.series.filter(({ name, value }) => name === 'klatch_refused_posts_total' && value > 0);
    expect(counted.map(({ labels, value }) => [labels['format'], value])).toEqual([
      ['slack', 2],
      ['none', 1],
    ]);
    expect(found.value('klatch_refused_posts_unrecorded_total')).toBe(0);
    // The series exists with the value 0 from the start, so that monitoring sees the first refusal as an increase.
    expect(found.value('klatch_refused_posts_total', { format: 'grafana' })).toBe(0);
  });

  test('that find the queue full count as such, those behind a lock as held, in posts and bytes', async () => {
    const group = await start({ limits: { intakePosts: 2 } });
    const lock = await lockHead(server.database.target, group.id as ConversationId);
    const waiting = ['one', 'two'].map((text) => postJson(group.webhook, { text }));
    const held = await until((found) => found.value('klatch_intake_blocked_posts') === 2);
    expect(held.value('klatch_intake_queue_posts')).toBe(2);
    expect(held.value('klatch_intake_queue_bytes')).toBeGreaterThan(6);
    expect(held.value('klatch_intake_failed_commits_total')).toBeGreaterThan(0);
    expect((await postJson(group.webhook, { text: 'three' })).status).toBe(503);
    await until((found) => found.value('klatch_http_errors_total', { code: 'overloaded' }) === 1);
    await lock.release();
    await Promise.all(waiting);
    const free = await read();
    expect(free.value('klatch_intake_blocked_posts')).toBe(0);
    expect(free.value('klatch_intake_queue_bytes')).toBe(0);
  });
});

describe('requests', () => {
  test('count by kind of route and class of status, each with its duration', async () => {
    const group = await start();
    const key = { 'idempotency-key': 'once' };
    await postJson(group.webhook, { text: 'x' }, key);
    await postJson(`${group.webhook}/?a=b`, { text: 'x' }, key);
    await fetch(group.webhook);
    await fetch(`${group.webhook}/reverse`);
    await fetch(`${group.webhook}/reverse/7`);
    await fetch(`${group.webhook}/status`);
    await fetch(`${unknown()}/status`);
    await fetch(`${server.url}/v1/ready?a`);
    await fetch(`${server.url}/v1/webhooks`);
    const found = await until(
      (each) => each.value('klatch_http_request_duration_seconds_count', { route: 'other' }) === 1,
    );
    const counted = found.series.filter(({ name, value }) => name === 'klatch_http_requests_total' && value > 0);
    expect(counted.map(({ labels, value }) => `${labels['route']} ${labels['status']} ${value}`)).toEqual([
      'send 2xx 2',
      'send 4xx 1',
      'reverse 2xx 1',
      'reverse 4xx 1',
      'token_status 2xx 1',
      'token_status 4xx 1',
      'health 2xx 1',
      'other 4xx 1',
    ]);
    expect(found.value('klatch_unknown_tokens_total')).toBe(1);
    expect(found.value('klatch_http_request_duration_seconds_count', { route: 'send' })).toBe(3);
    expect(found.value('klatch_http_request_duration_seconds_sum', { route: 'send' })).toBeGreaterThan(0);
    expect(found.value('klatch_http_connections')).toBeGreaterThan(0);
  });

  test('whose client leaves count without a status', async () => {
    const group = await start();
    const socket = connect(server.port, '127.0.0.1');
    await once(socket, 'connect');
    socket.write(`POST ${new URL(group.webhook).pathname} HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf`);
    // When the server answers on a later connection, it has accepted this one.
    await fetch(`${server.url}/v1/status`);
    socket.destroy();
    await until((found) => found.value('klatch_http_requests_total', { route: 'send', status: 'none' }) === 1);
  });

  test('that wait for a connection of a pool count with their waits', async () => {
    const group = await start({ postgresql: { generalPoolSize: 1 } });
    await Promise.all(Array.from({ length: 20 }, () => fetch(`${group.webhook}/reverse`)));
    // The server's own workers also use this one connection, so one of them may wait at this moment.
    const found = await until((now) => now.value('klatch_pool_waiting_calls', { pool: 'general' }) === 0);
    expect(found.value('klatch_pool_connections', { pool: 'general' })).toBe(1);
    expect(found.value('klatch_pool_wait_duration_seconds_count', { pool: 'general' })).toBeGreaterThan(0);
    expect(found.value('klatch_pool_wait_duration_seconds_sum', { pool: 'general' })).toBeGreaterThan(0);
  });

  test('that find too many waiting for a connection of a pool count as rejected', async () => {
    const patience = { lockTimeoutMs: 120_000, databaseCallTimeoutMs: 120_000 };
    const group = await start({ postgresql: { generalPoolSize: 1, poolQueue: 30, ...patience } });
    const lock = await lockHead(server.database.target, group.id as ConversationId);
    const rename = server.operate('groups.update', { group: group.id, title: 'Waits' });
    const requests = Array.from({ length: 60 }, () => fetch(`${group.webhook}/reverse`));
    await until((found) => found.value('klatch_pool_rejections_total', { pool: 'general' }) > 0);
    await lock.release();
    await rename;
    expect((await Promise.all(requests)).map(({ status }) => status)).toContain(503);
  });
});

describe('deliveries', () => {
  test('count by outcome and category, with their durations and retries', async () => {
    const group = await start();
    const answers = [200, 503, 503, 200];
    const receiver = await receive(() => answers.shift() ?? 200);
    await register(group, receiver.url());
    for (const text of ['one', 'two']) await postJson(group.webhook, { text });
    await receiver.received(4);
    const found = await until((each) => each.value('klatch_deliveries_total', { outcome: 'delivered' }) === 2);
    expect(found.value('klatch_deliveries_total', { outcome: 'failed' })).toBe(2);
    expect(found.value('klatch_deliveries_total', { outcome: 'unregistered' })).toBe(0);
    expect(found.value('klatch_delivery_failures_total', { category: 'status' })).toBe(2);
    expect(found.value('klatch_delivery_retries_total')).toBe(2);
    expect(found.value('klatch_delivery_duration_seconds_count', { outcome: 'delivered' })).toBe(2);
    expect(found.value('klatch_delivery_duration_seconds_count', { outcome: 'failed' })).toBe(2);
    expect(found.value('klatch_partitions_held')).toBe(64);
    await until((each) => each.value('klatch_delivery_results_pending') === 0);
  });

  test('count a receiver that answers 410 as unregistered and not as failed', async () => {
    const group = await start();
    const receiver = await receive(() => 410);
    await register(group, receiver.url());
    await postJson(group.webhook, { text: 'x' });
    const found = await until((each) => each.value('klatch_deliveries_total', { outcome: 'unregistered' }) === 1);
    expect(found.value('klatch_deliveries_total', { outcome: 'failed' })).toBe(0);
    expect(found.value('klatch_delivery_duration_seconds_count', { outcome: 'unregistered' })).toBe(1);
  });

  test('under way and waiting for their turn are shown while they last', async () => {
    const group = await start({ delivery: { maxInFlight: 1 } });
    const gate = Promise.withResolvers<number>();
    const receiver = await receive(() => gate.promise);
    for (const path of ['/a', '/b', '/c']) await register(group, receiver.url(path));
    await postJson(group.webhook, { text: 'x' });
    await until((found) => found.value('klatch_deliveries_queued') === 2);
    expect((await read()).value('klatch_deliveries_in_flight')).toBe(1);
    gate.resolve(200);
    const after = await until((found) => found.value('klatch_deliveries_total', { outcome: 'delivered' }) === 3);
    expect(after.value('klatch_deliveries_queued')).toBe(0);
  });

  test('count look-ups of names, what was remembered of them, and failures by their category', async () => {
    // The server looks up the host names of its own URLs as well. These have IP addresses, which need no look-up.
    const addresses = { http: { baseUri: 'http://192.0.2.1' }, publicEndpoints: [] };
    const group = await start({ ...addresses, delivery: { retryDelaysMs: [30, 60_000] } });
    const port = await freePort();
    await register(group, `http://localhost:${port}/`);
    await register(group, 'http://nowhere.invalid/');
    await postJson(group.webhook, { text: 'x' });
    const found = await until(
      (each) =>
        each.value('klatch_delivery_failures_total', { category: 'refused' }) === 2 &&
        each.value('klatch_delivery_failures_total', { category: 'dns' }) === 2,
    );
    expect(found.value('klatch_dns_lookups_total', { result: 'found' })).toBe(1);
    expect(found.value('klatch_dns_lookups_total', { result: 'failed' })).toBe(1);
    expect(found.value('klatch_dns_lookup_cache_hits_total')).toBe(2);
    expect(found.value('klatch_dns_lookup_duration_seconds_count')).toBe(2);
    expect(found.value('klatch_dns_lookup_timeouts_total')).toBe(0);
  });

  test('that fail show their hook as failing, with something pending, and for how long', async () => {
    const group = await start({ delivery: { retryDelaysMs: [60_000] } });
    const [failing, well] = [await receive(() => 500), await receive()];
    for (const receiver of [failing, well]) await register(group, receiver.url());
    await postJson(group.webhook, { text: 'x' });
    // The database has to have the state before the first scrape: the server reads the report then, and caches it.
    await eventually(
      () => server.database.query((sql) => sql`select from reverse_hook where failures > 0 or cursor > 0`),
      (rows) => rows.length === 2,
    );
    const found = await read();
    expect(found.value('klatch_hooks', { state: 'failing' })).toBe(1);
    expect(found.value('klatch_hooks', { state: 'active' })).toBe(1);
    expect(found.value('klatch_hooks', { state: 'parked' })).toBe(0);
    expect(found.value('klatch_hooks', { state: 'paused' })).toBe(0);
    expect(found.value('klatch_hooks_pending')).toBe(1);
    const age = found.value('klatch_oldest_pending_age_seconds');
    expect(age).toBeGreaterThan(0);
    expect((await read()).value('klatch_oldest_pending_age_seconds')).toBeGreaterThan(age);
    expect((await read()).value('klatch_hooks_report_age_seconds')).toBeLessThan(10);
  });
});

test('nothing in the exposition names a group, a token, a target or a text, whatever happened', async () => {
  const group = await start({ delivery: { retryDelaysMs: [30, 60_000] } });
  const receiver = await receive(() => 500);
  await register(group, receiver.url('/private-path?secret=query'));
  await register(group, 'http://user-host.invalid/private-path');
  await postJson(group.webhook, { text: 'a private text' }, { 'idempotency-key': 'private-key' });
  await postJson(`${server.url}/v1/webhooks/guessed-token-of-somebody`, { text: 'x' });
  await fetch(`${server.url}/private-page/${group.token}`);
  const { text, series } = await until((each) => each.value('klatch_delivery_failures_total', { category: 'dns' }) > 1);
  for (const secret of [group.token, 'guessed', 'private', 'user-host', '127.0.0.1', 'title']) {
    expect(text).not.toContain(secret);
  }
  // Only labels are checked: a value may by chance have the same digits as the port.
  const labelValues = series.flatMap((each) => Object.values(each.labels));
  expect(labelValues.filter((value) => value.includes(String(receiver.port)))).toEqual([]);
  const labels = new Set(series.flatMap((each) => Object.keys(each.labels)));
  expect([...labels].sort()).toEqual([
    'category',
    'code',
    'format',
    'le',
    'outcome',
    'pool',
    'purpose',
    'reason',
    'result',
    'route',
    'state',
    'status',
    'transport',
    'vendor',
    'version',
    'way',
  ]);
});
