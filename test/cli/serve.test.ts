import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { SCHEMA_LOCK_KEY as MIGRATION_LOCK } from '../../src/storage/db/migrate.ts';
import { eventually } from '../support/eventually.ts';
import { createTestDatabase, waitingForLock, waitingSessions, type TestDatabase } from '../support/database.ts';
import { within } from '../run/machine-speed.ts';
import { postJson } from '../support/server.ts';
import { Workspace } from './program.ts';

let database: TestDatabase;
let workspace: Workspace;
/**
 * The setting for the store of files. The tests share one database, which has one store; each has a data directory of
 * its own.
 */
const filesLocation = (): string => `services.file-storage.location = ${JSON.stringify(database.filesFolder)}`;

beforeAll(async () => {
  database = await createTestDatabase();
});

afterAll(async () => database.drop());

beforeEach(async () => {
  workspace = await Workspace.create();
  await workspace.configure(database.target, [filesLocation()]);
});

afterEach(async () => workspace.remove());

describe('a running server', () => {
  test('stops cleanly on SIGTERM: exit 0 and no word on standard error', async () => {
    const { server, url } = await workspace.serve();
    expect((await fetch(`${url}/v1/ready`)).status).toBe(200);
    server.process.kill('SIGTERM');
    expect(await server.event('stopping')).toMatchObject({ signal: 'SIGTERM' });
    expect(await server.ended).toMatchObject({ code: 0, signal: null, stderr: '' });
  });

  test('goes on when a terminal is lost that nothing of it is at, as behind nohup', async () => {
    const { server, url } = await workspace.serve();
    server.process.kill('SIGHUP');
    expect((await fetch(`${url}/v1/ready`)).status).toBe(200);
    server.process.kill('SIGTERM');
    expect(await server.event('stopping')).toMatchObject({ signal: 'SIGTERM' });
    expect(await server.ended).toMatchObject({ code: 0, signal: null, stderr: '' });
  });

  test('stays up when its database ends all sessions in the middle of transactions', async () => {
    const { server, url } = await workspace.serve();
    const created = JSON.parse((await workspace.run(['group', 'create', 'Ops', '--json'])).stdout) as {
      webhook: string;
    };
    const path = new URL(created.webhook).pathname;
    const registered = await postJson(`${url}${path}/reverse`, { url: 'http://127.0.0.1:9/' });
    expect(registered.status).toBe(201);
    const hook = `${url}${path}/reverse/${registered.body.id}`;
    for (let n = 0; n < 5; n += 1) {
      const asked: Promise<unknown>[] = [];
      const answers: number[] = [];
      const count = ({ status }: Response): unknown => answers.push(status);
      await database.query((sql) =>
        sql.begin(async (tx) => {
          await tx`select from reverse_hook for update`;
          const headers = { 'content-type': 'application/json' };
          await eventually(
            () => {
              // A request may use a database session that has just ended, and fail at once. Then the test sends another
              // request.
              while (asked.length - answers.length < 3) {
                asked.push(fetch(hook, { method: 'PATCH', headers, body: '{"paused":true}' }).then(count));
              }
              return waitingSessions(database);
            },
            (waiting) => waiting.length > 0,
          );
          await tx`
            select pg_terminate_backend(pid) from pg_stat_activity
            where datname = current_database() and pid <> pg_backend_pid()`;
        }),
      );
      await Promise.all(asked);
      for (const status of answers) expect([200, 202, 503]).toContain(status);
      await eventually(
        () => fetch(`${url}/v1/ready`),
        ({ status }) => status === 200,
      );
    }
    server.process.kill('SIGTERM');
    expect(await server.ended).toMatchObject({ code: 0, signal: null, stderr: '' });
  });

  test('stops on SIGTERM while it waits for another node that migrates: exit 0', async () => {
    const empty = await createTestDatabase({ empty: true });
    try {
      await workspace.configure(empty.target);
      await empty.query(async (sql) => {
        await sql`select pg_advisory_lock(${MIGRATION_LOCK})`;
        const server = workspace.start(['serve']);
        await eventually(
          () => waitingForLock(sql),
          (waiting) => waiting.length > 0,
        );
        server.process.kill('SIGTERM');
        expect(await server.ended).toMatchObject({ code: 0, stderr: '' });
      });
    } finally {
      await empty.drop();
    }
  });

  test('takes a signal that arrives twice, from the terminal and from npm, as one', async () => {
    const { server } = await workspace.serve();
    server.process.kill('SIGINT');
    server.process.kill('SIGINT');
    server.process.kill('SIGTERM');
    expect(await server.ended).toMatchObject({ code: 0, stderr: '' });
  });

  test('ends at once when it is asked again while a request holds up its stop', async () => {
    const { server, url } = await workspace.serve();
    const { stdout } = await workspace.run(['group', 'create', 'Slow', '--json']);
    const { webhook } = JSON.parse(stdout) as { webhook: string };
    const held = await openRequest(Number(new URL(url).port), new URL(webhook).pathname);
    server.process.kill('SIGTERM');
    await server.event('stopping');
    // The server counts signals within a second as one request to stop, so the test repeats the signal.
    const asking = setInterval(() => server.process.kill('SIGINT'), 100);
    const { code, stderr } = await server.ended;
    clearInterval(asking);
    held.destroy();
    expect(code).toBe(130);
    expect(stderr).toMatch(/^klatch: stopped at once by a second SIGINT/);
  });

  test('is what the program is without a command: named klatch, with the 16 threads that look-ups count on', async () => {
    const server = workspace.start([], { UV_THREADPOOL_SIZE: '2' });
    await server.event('ready');
    const tasks = `/proc/${server.pid}/task`;
    const names = readdirSync(tasks).map((task) => readFileSync(`${tasks}/${task}/comm`, 'utf8').trim());
    expect(names.filter((name) => name === 'libuv-worker')).toHaveLength(16);
    expect(readFileSync(`/proc/${server.pid}/cmdline`, 'utf8')).toMatch(/^klatch\0/);
  });

  test('starts again after kill -9 and has every message that it had confirmed', async () => {
    const first = await workspace.serve();
    const created = await workspace.run(['group', 'create', 'Survivors', '--json']);
    const { webhook, id } = JSON.parse(created.stdout) as { webhook: string; id: number };
    const path = new URL(webhook).pathname;
    expect(await postJson(first.url + path, { text: 'before' })).toMatchObject({
      status: 200,
      body: { id: `${id}:1` },
    });
    first.server.process.kill('SIGKILL');
    expect(await first.server.ended).toMatchObject({ signal: 'SIGKILL' });
    const second = await workspace.serve();
    expect(await postJson(second.url + path, { text: 'after' })).toMatchObject({
      status: 200,
      body: { id: `${id}:2` },
    });
  });

  test('is waited for by ready --wait, and called down with the reason when there is none', async () => {
    expect(await workspace.run(['ready'])).toMatchObject({
      code: 69,
      stderr: expect.stringMatching(/^klatch: no Klatch runs with the data directory /),
    });
    const waiting = workspace.run(['ready', '--wait', '30']);
    await workspace.serve();
    expect(await waiting).toMatchObject({ code: 0, stderr: '' });
  });

  test('ends with 76 when a newer Klatch changes the schema beneath it', async () => {
    const shared = await createTestDatabase();
    try {
      await workspace.configure(shared.target);
      const { server } = await workspace.serve();
      await shared.query((sql) => sql`insert into schema_version (version, name) values (9999, 'future')`);
      expect(await server.ended).toMatchObject({ code: 76, stderr: expect.stringContaining('schema 9999') });
    } finally {
      await shared.drop();
    }
  });

  test('logs what nobody caught as `crashed` and ends with 70', async () => {
    const script = 'process.on("SIGUSR2", () => { Promise.reject(new Error("boom")) })';
    const fault = `data:text/javascript,${encodeURIComponent(script)}`;
    const server = workspace.start(['serve'], { NODE_OPTIONS: `--import=${fault}` });
    await server.event('ready');
    server.process.kill('SIGUSR2');
    const { code, stderr } = await server.ended;
    expect(code).toBe(70);
    expect(await server.event('crashed')).toMatchObject({ level: 50, error: { message: 'boom' } });
    expect(stderr).toMatch(/^klatch: This is a defect of Klatch: Error: boom/);
  });
});

describe('a server that cannot start says why on standard error and in its log', () => {
  async function refusal(env: NodeJS.ProcessEnv = {}) {
    const server = workspace.start(['serve'], env);
    const { code, stderr } = await server.ended;
    const event = await server.event('cannot run');
    expect(event).toMatchObject({ level: 50, exitCode: code });
    expect(stderr).toBe(`klatch: ${event['reason'] as string}\n`);
    expect(stderr).not.toMatch(/^ +at /m);
    return { code, stderr };
  }

  test('placeholders: 78 and each of them with its line', async () => {
    await workspace.write([
      'secret = "<SERVER_SECRET>"',
      'http.base-uri = "<BASE_URI>"',
      'services.google.push.keys = [<GOOGLE>]',
    ]);
    const { code, stderr } = await refusal();
    expect(code).toBe(78);
    expect(stderr).toMatch(
      /server\.conf:1:\d+: secret: [^]*server\.conf:2:\d+: http\.base-uri: [^]*:3:\d+: services\.google\.push\.keys/,
    );
  });

  test('a data directory in use: 75 and the pid of who uses it', async () => {
    const { server } = await workspace.serve();
    const { code, stderr } = await refusal();
    expect(code).toBe(75);
    expect(stderr).toContain(`pid ${server.pid}`);
    expect(server.process.exitCode).toBeNull();
  });

  test('a port that is taken: 73 and the keys to change', async () => {
    const taken = await listen();
    try {
      await workspace.configure(database.target, [`http.port = ${(taken.address() as AddressInfo).port}`]);
      const { code, stderr } = await refusal();
      expect(code).toBe(73);
      expect(stderr).toMatch(/another program listens on 127\.0\.0\.1:\d+ \(http\.interface, http\.port\)/);
    } finally {
      await close(taken);
    }
  });

  test('a port for metrics that is taken: 73 and the keys to change', async () => {
    const taken = await listen();
    try {
      await workspace.configure(database.target, [`metrics.port = ${(taken.address() as AddressInfo).port}`]);
      const { code, stderr } = await refusal();
      expect(code).toBe(73);
      expect(stderr).toMatch(/another program listens on 127\.0\.0\.1:\d+ \(metrics\.interface, metrics\.port\)/);
    } finally {
      await close(taken);
    }
  });

  test('a database that refuses connections: 69', async () => {
    const gone = await listen();
    const { port } = gone.address() as AddressInfo;
    await close(gone);
    await workspace.configure({ ...database.target, host: '127.0.0.1', port });
    const { code, stderr } = await refusal();
    expect(code).toBe(69);
    expect(stderr).toContain('services.postgresql');
  });

  test('a database that never answers: 69 within its connect-timeout', async () => {
    const silent = await listen();
    try {
      const target = { ...database.target, host: '127.0.0.1', port: (silent.address() as AddressInfo).port };
      await workspace.configure(target, ['services.postgresql.connect-timeout = 1s']);
      const startedMs = performance.now();
      expect(await refusal()).toMatchObject({ code: 69 });
      expect(performance.now() - startedMs).toBeLessThan(within(8_000));
    } finally {
      await close(silent);
    }
  });

  test('a schema of a newer Klatch: 76', async () => {
    const newer = await createTestDatabase();
    try {
      await newer.query((sql) => sql`insert into schema_version (version, name) values (9999, 'future')`);
      await workspace.configure(newer.target);
      expect(await refusal()).toMatchObject({ code: 76, stderr: expect.stringContaining('schema 9999') });
    } finally {
      await newer.drop();
    }
  });

  test('another secret than the database was made with: 77, and neither secret is shown', async () => {
    const { server } = await workspace.serve();
    await server.stop();
    const other = 'Zx8wVb5nMq2rTk7yPl4jHs9dFg3cUa6o';
    await workspace.configure(database.target, [filesLocation(), `secret = "${other}"`]);
    const { code, stderr } = await refusal();
    expect(code).toBe(77);
    expect(stderr).toMatch(/secret differs/);
    expect(stderr).not.toContain(other);
  });

  test('a data directory that cannot be made: 73', async () => {
    await workspace.configure(database.target, [`data-dir = ${JSON.stringify(`${workspace.file}/data`)}`]);
    expect(await refusal()).toMatchObject({
      code: 73,
      stderr: expect.stringMatching(/The data directory .* cannot be made or reached \(ENOTDIR\).*data-dir/),
    });
  });
});

/** Starts a TCP server that listens and never answers. */
async function listen(): Promise<Server> {
  const server = createServer((socket) => {
    socket.on('error', () => socket.destroy());
    server.once('stop', () => socket.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

async function close(server: Server): Promise<void> {
  server.emit('stop');
  server.close();
  await once(server, 'close');
}

/** Sends a post without its body; resolves when the server waits for the body. */
async function openRequest(port: number, path: string): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => socket.destroy());
  socket.write(`POST ${path} HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n`);
  const [answer] = (await once(socket, 'data')) as [Buffer];
  expect(answer.toString()).toMatch(/^HTTP\/1\.1 100 /);
  return socket;
}
