import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { DatabaseProxy } from '../support/database-proxy.ts';
import { eventually } from '../support/eventually.ts';
import { Receiver } from '../support/receiver.ts';
import { freePort } from '../support/ports.ts';
import { postJson, readJson } from '../support/server.ts';
import { SECRET, Workspace, type Program } from '../cli/program.ts';
import { normalise, record, transcriptOf } from './transcript.ts';

const STATUS_AND_DOCTOR = ['status', 'doctor'];

let workspace: Workspace;
let port: number;
let metricsPort: number;

beforeEach(async () => {
  workspace = await Workspace.create();
  port = await freePort();
  metricsPort = await freePort();
});

afterEach(async () => workspace.remove());

/** Writes a configuration; `lines` come last, so that they take precedence. */
async function configure(...lines: string[]): Promise<void> {
  await workspace.write([
    `secret = "${SECRET}"`,
    `http { port = ${port}, base-uri = "http://127.0.0.1:${port}" }`,
    `metrics.port = ${metricsPort}`,
    'endpoints = []',
    'data-dir = "data"',
    'services.postgresql.embedded = true',
    'delivery.allow = ["loopback"]',
    ...lines,
  ]);
}

async function createGroup(title: string): Promise<string> {
  const { stdout } = await workspace.run(['group', 'create', title, '--json']);
  return (JSON.parse(stdout) as { webhook: string }).webhook;
}

/** Registers a hook, posts a message, and waits until `right` is true of the hook's health. */
async function deliver(webhook: string, url: string, right: (health: { state: string; pending: number }) => boolean) {
  const { body } = await postJson(`${webhook}/reverse`, { url });
  expect(await postJson(webhook, { text: 'hello' })).toMatchObject({ status: 200 });
  await eventually(async () => (await readJson(await fetch(`${webhook}/reverse/${body.id}`))).body, right);
}

/** Stops a server, and with it its embedded database. */
async function stop(server: Program): Promise<void> {
  server.process.kill('SIGTERM');
  await server.ended;
}

async function expectTranscript(name: string, ports: Record<number, string> = {}): Promise<void> {
  const text = await record(workspace, STATUS_AND_DOCTOR);
  const actual = normalise(text, {
    folder: workspace.folder,
    ports: { [port]: '9090', [metricsPort]: '19090', ...ports },
  });
  expect(actual).not.toContain(SECRET);
  expect(actual).toBe(transcriptOf(name, actual));
}

describe('the transcripts of docs/operations.md are what the program prints', () => {
  test('when all is well', async () => {
    await configure();
    const { server } = await workspace.serve();
    const receiver = await Receiver.start();
    try {
      await deliver(await createGroup('Alerts'), receiver.url('/hook'), ({ pending }) => pending === 0);
      await expectTranscript('healthy');
    } finally {
      await stop(server);
      await receiver.stop();
    }
  });

  test('when the server was killed', async () => {
    await configure();
    const { server } = await workspace.serve();
    await server.stop();
    await expectTranscript('killed');
    // The database of the killed server still runs. The next server takes it over, and stops it in the end.
    await stop((await workspace.serve()).server);
  });

  test('when receivers do not take what is sent', async () => {
    await configure('delivery.retry = [1h]');
    let { server } = await workspace.serve();
    const receiver = await Receiver.start(() => 503);
    try {
      const [first, second] = [await createGroup('Alerts'), await createGroup('Builds')];
      await deliver(first, receiver.url('/hook'), ({ state }) => state === 'failing');
      await postJson(`${second}/reverse`, { url: 'http://127.0.0.9/hook' });
      await stop(server);
      await configure('delivery.retry = [1h]', 'delivery.allow = ["127.0.0.1"]');
      ({ server } = await workspace.serve());
      await postJson(second, { text: 'hello' });
      const list = async () => (await readJson(await fetch(`${second}/reverse`))).body as { state: string }[];
      await eventually(list, ([hook]) => hook?.state === 'failing');
      await expectTranscript('receivers', { [receiver.port]: '8080' });
    } finally {
      await stop(server);
      await receiver.stop();
    }
  });

  test('when the configuration has mistakes', async () => {
    await configure();
    await stop((await workspace.serve()).server);
    await configure('http.port = "high"', 'delivery.in-flihgt = 10', 'log.level = chatty');
    await expectTranscript('configuration');
  });
});

describe('the transcript with a database of its own', () => {
  let database: TestDatabase;
  let proxy: DatabaseProxy;

  beforeAll(async () => {
    database = await createTestDatabase();
    proxy = await DatabaseProxy.start(database.target);
  });

  afterAll(async () => {
    await proxy.stop();
    await database.drop();
  });

  test('is what the program prints when the database is away', async () => {
    const { database: db, user } = database.target;
    const place = { embedded: false, unsafe: true, ...proxy.address, db, user, password: '' };
    await configure(`services.postgresql = ${JSON.stringify(place)}`);
    await workspace.serve();
    await createGroup('Alerts');
    expect(await workspace.run(['status'])).toMatchObject({ code: 0 });
    await proxy.refuse();
    await expectTranscript('database away', { [proxy.address.port]: '5432' });
  });
});
