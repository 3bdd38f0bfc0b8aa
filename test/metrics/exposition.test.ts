import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { silentLog } from '../../src/log.ts';
import { Server } from '../../src/server.ts';
import { SCHEMA_LOCK_KEY as MIGRATION_LOCK } from '../../src/storage/db/migrate.ts';
import { readVersion } from '../../src/version.ts';
import { Workspace } from '../cli/program.ts';
import { testConfig } from '../support/config.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { DatabaseProxy } from '../support/database-proxy.ts';
import { eventually } from '../support/eventually.ts';
import { within } from '../run/machine-speed.ts';
import { postJson, readJson, TestServer } from '../support/server.ts';
import { scrape, type Scrape } from './scrape.ts';

const metrics = { metricsEnabled: true };

describe('the metrics listener', () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await TestServer.start({ metrics });
  });
  afterAll(() => server.stop());

  test('answers GET /metrics in the text format of Prometheus, HEAD without the text', async () => {
    const got = await fetch(`${server.metricsUrl}?x=1`);
    expect(got.status).toBe(200);
    expect(got.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
    expect(got.headers.get('cache-control')).toBe('no-store');
    expect(await got.text()).toContain(`klatch_build_info{version="${readVersion()}"} 1\n`);
    const head = await fetch(server.metricsUrl, { method: 'HEAD' });
    expect([head.status, await head.text()]).toEqual([200, '']);
  });

  test.each([
    ['GET', '/'],
    ['GET', '/metrics/'],
    ['GET', '/v1/status'],
    ['GET', `/v1/webhooks/${'x'.repeat(43)}`],
    ['POST', '/metrics'],
    ['DELETE', '/metrics'],
  ])('answers %s %s with 404 in JSON', async (method, path) => {
    const answer = await readJson(await fetch(new URL(path, server.metricsUrl), { method }));
    expect([answer.status, answer.body]).toEqual([404, { message: 'There is nothing here but GET /metrics' }]);
    expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8');
  });

  test('does not answer on the HTTP interface', async () => {
    expect((await fetch(`${server.url}/metrics`)).status).toBe(404);
  });

  test('answers many scrapes at the same time', async () => {
    const all = await Promise.all(Array.from({ length: 50 }, () => scrape(server.metricsUrl)));
    expect(all.every((each) => each.value('klatch_build_info', { version: readVersion() }) === 1)).toBe(true);
  });

  test('gives each family a type and one sentence, each histogram buckets that rise to its count', async () => {
    const { types, helps, series } = await scrape(server.metricsUrl);
    expect(types.size).toBeGreaterThan(40);
    expect([...helps.keys()]).toEqual([...types.keys()]);
    for (const [name, help] of helps) expect([name, help]).toEqual([name, expect.stringMatching(/^[A-Z].*\.$/)]);
    for (const [name, type] of types) {
      expect(name).toMatch(/^(klatch|process|nodejs)_[a-z_]+$/);
      expect(name.endsWith('_total')).toBe(type === 'counter');
      if (type === 'histogram') expectHistogram(series, name);
      else expect(series.some((each) => each.name === name)).toBe(true);
    }
  });
});

function expectHistogram(series: Scrape['series'], name: string): void {
  const of = (suffix: string): Scrape['series'] => series.filter((each) => each.name === `${name}${suffix}`);
  expect(of('_count').length).toBeGreaterThan(0);
  for (const { labels, value: count } of of('_count')) {
    const matches = (each: Scrape['series'][number]): boolean =>
      Object.entries(labels).every(([label, value]) => each.labels[label] === value);
    const buckets = of('_bucket').filter(matches);
    expect(of('_sum').filter(matches)).toHaveLength(1);
    expect(buckets.at(-1)).toMatchObject({ labels: { le: '+Inf' }, value: count });
    const values = buckets.map(({ value }) => value);
    expect([...values].sort((a, b) => a - b)).toEqual(values);
    const bounds = buckets.slice(0, -1).map((bucket) => Number(bucket.labels['le']));
    expect([...new Set(bounds)].sort((a, b) => a - b)).toEqual(bounds);
  }
}

test('a server that is starting tells a scraper to wait, and one that stops answers to the end', async () => {
  const database = await createTestDatabase({ empty: true });
  const dataDir = await mkdtemp(join(tmpdir(), 'klatch-metrics-'));
  const server = new Server(testConfig(database.target, dataDir, { metrics }), silentLog());
  let starting = Promise.resolve();
  try {
    await database.query(async (sql) => {
      await sql`select pg_advisory_lock(${MIGRATION_LOCK})`;
      starting = server.start();
      const port = await eventually(
        async () => server.metricsPort,
        (number) => number !== null,
      );
      const answer = await readJson(await fetch(`http://127.0.0.1:${port}/metrics`));
      expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '2']);
      expect(answer.body.message).toMatch(/^The server is starting/);
    });
    await starting;
    const url = `http://127.0.0.1:${server.metricsPort}/metrics`;
    expect((await fetch(url)).status).toBe(200);
    await server.stop();
    await expect(fetch(url)).rejects.toThrow('fetch failed');
  } finally {
    await server.stop();
    await database.drop();
    await rm(dataDir, { recursive: true, force: true });
  }
});

describe('the program', () => {
  let workspace: Workspace;
  let database: TestDatabase;
  beforeEach(async () => {
    workspace = await Workspace.create();
    database = await createTestDatabase();
  });
  afterEach(async () => {
    await workspace.remove();
    await database.drop();
  });

  test('logs the port of its metrics when it is ready', async () => {
    await workspace.configure(database.target);
    const { server } = await workspace.serve();
    const { metricsPort } = await server.event('ready');
    expect((await scrape(`http://127.0.0.1:${metricsPort as number}/metrics`)).has('klatch_build_info')).toBe(true);
  });

  test('opens no port for metrics that are switched off', async () => {
    await workspace.configure(database.target, ['metrics.enabled = off']);
    const { server } = await workspace.serve();
    expect(await server.event('ready')).toMatchObject({ metricsPort: null });
  });
});

describe('while the database is away', () => {
  /** The longest time for which a scrape waits for a report, plus the time that this machine may add. */
  const SOON_MS = 1_000 + 3_000;
  let database: TestDatabase;
  let proxy: DatabaseProxy;
  let server: TestServer;
  beforeEach(async () => {
    database = await createTestDatabase();
    proxy = await DatabaseProxy.start(database.target);
    const postgresql = { ...proxy.address, flushTimeoutMs: 1_000, connectTimeoutMs: 1_000 };
    server = await TestServer.start({ metrics, postgresql, limits: { intakeTimeoutMs: 1_000 } }, { database });
  });
  afterEach(async () => {
    await proxy.forward();
    await server.stop();
    await proxy.stop();
    await database.drop();
  });

  test('that swallows everything a scrape is answered in time, says so, and leaves out what is not known', async () => {
    proxy.hold('both');
    const startedAt = performance.now();
    const found = await scrape(server.metricsUrl);
    expect(performance.now() - startedAt).toBeLessThan(within(SOON_MS));
    expect(found.value('klatch_database_up')).toBe(0);
    expect(found.has('klatch_hooks')).toBe(false);
    expect(found.has('klatch_oldest_pending_age_seconds')).toBe(false);
    expect(found.value('klatch_intake_queue_posts')).toBe(0);
  });

  test('that refuses, the failed commits and refusals are counted; after its return it is up', async () => {
    const group = await server.createGroup();
    expect((await postJson(group.webhook, { text: 'before' })).status).toBe(200);
    await proxy.refuse();
    await eventually(
      () => postJson(group.webhook, { text: 'while away' }),
      ({ body }) => body.message?.startsWith('The database is away') === true,
    );
    const away = await scrape(server.metricsUrl);
    expect(away.value('klatch_database_up')).toBe(0);
    expect(away.value('klatch_intake_failed_commits_total')).toBeGreaterThan(0);
    expect(away.value('klatch_intake_outage_refusals_total')).toBeGreaterThan(0);
    expect(away.value('klatch_http_errors_total', { code: 'database_unavailable' })).toBeGreaterThan(0);
    expect(away.value('klatch_http_requests_total', { route: 'send', status: '5xx' })).toBeGreaterThan(0);
    await proxy.forward();
    const back = await eventually(
      () => scrape(server.metricsUrl),
      (each) => each.value('klatch_database_up') === 1,
    );
    expect(back.value('klatch_hooks', { state: 'active' })).toBe(0);
  });
});
