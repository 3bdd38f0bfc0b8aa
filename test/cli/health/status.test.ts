import { once } from 'node:events';
import { mkdir, readFile } from 'node:fs/promises';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { SCHEMA_LOCK_KEY as MIGRATION_LOCK } from '../../../src/storage/db/migrate.ts';
import { readLastRun } from '../../../src/data-dir/server-state.ts';
import { createTestDatabase, waitingForLock, type TestDatabase } from '../../support/database.ts';
import { DatabaseProxy } from '../../support/database-proxy.ts';
import { eventually } from '../../support/eventually.ts';
import { Receiver } from '../../support/receiver.ts';
import { postJson } from '../../support/server.ts';
import { Workspace } from '../program.ts';

// oxlint-disable-next-line typescript/no-explicit-any -- tests look into it freely
type Json = Record<string, any>;

let database: TestDatabase;
let workspace: Workspace;

// Each test gets a new database. The leases of a killed server last 10 s, and deliveries of the next server on the same
// database would wait for them.
beforeEach(async () => {
  database = await createTestDatabase();
  workspace = await Workspace.create();
  await workspace.configure(database.target);
});

afterEach(async () => {
  await workspace.remove();
  await database.drop();
});

/**
 * Runs `klatch status`, `klatch status --json` and `klatch ready`, and expects that all exit with 69. Returns the first
 * line of `status` without its name, the JSON, the output of `ready`, and all output.
 */
async function down(): Promise<{ line: string; json: Json; reason: string; all: string }> {
  const [text, ready, json] = await Promise.all([
    workspace.run(['status']),
    workspace.run(['ready']),
    workspace.run(['status', '--json']),
  ]);
  expect([text.code, ready.code, json.code]).toEqual([69, 69, 69]);
  expect(ready.stdout).toBe('');
  const line = /^server: +(.*)\n/.exec(text.stdout)?.[1] ?? text.stdout;
  return { line, json: JSON.parse(json.stdout) as Json, reason: ready.stderr, all: text.stdout };
}

/**
 * Sends a request without its body; resolves when the server waits for the body. The open request delays a stop of the
 * server.
 */
async function holdRequest(url: string): Promise<Socket> {
  const created = await workspace.run(['group', 'create', 'Slow', '--json']);
  const { webhook } = JSON.parse(created.stdout) as { webhook: string };
  const held = connect(Number(new URL(url).port), '127.0.0.1');
  held.on('error', () => held.destroy());
  const head = `POST ${new URL(webhook).pathname} HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n`;
  held.write(head);
  await once(held, 'data');
  return held;
}

const NOBODY = /^klatch: no Klatch runs with the data directory .*: start it with `klatch serve`\n$/;

describe('the status of a server that runs', () => {
  test('has its hooks by state, what is pending, and the last errors with hosts and without paths', async () => {
    await workspace.configure(database.target, ['delivery.retry = [1h]']);
    const { url } = await workspace.serve();
    const receiver = await Receiver.start(() => 503);
    try {
      const created = await workspace.run(['group', 'create', 'Failing', '--json']);
      const { id, webhook } = JSON.parse(created.stdout) as { id: number; webhook: string };
      const group = url + new URL(webhook).pathname;
      const target = receiver.url('/very-private?key=hunter2');
      const { body } = await postJson(`${group}/reverse`, { url: target });
      await postJson(group, { text: 'to be refused' });
      const { stdout } = await eventually(
        () => workspace.run(['status']),
        (status) => status.stdout.includes('last errors'),
      );
      expect(stdout).toMatch(/\nhooks: +0 active, 1 failing, 0 parked, 0 paused\n/);
      expect(stdout).toMatch(/\npending: +1 hook has messages to deliver; the oldest has waited for \d+ s\n/);
      expect(stdout).toMatch(
        new RegExp(
          `\\nlast errors:\\n {2}\\S+Z {2}hook ${body.id} of group ${id} to 127\\.0\\.0\\.1:\\d+: the target answered 503\\n$`,
        ),
      );
      expect(stdout).not.toMatch(/very-private|hunter2/);
    } finally {
      await receiver.stop();
    }
  });

  test('tells that the database is away, and what was known before', async () => {
    const proxy = await DatabaseProxy.start(database.target);
    try {
      await workspace.configure({ ...database.target, ...proxy.address });
      await workspace.serve();
      expect(await workspace.run(['status'])).toMatchObject({ code: 0 });
      await proxy.refuse();
      const { code, stdout, stderr } = await workspace.run(['status']);
      expect({ code, stderr }).toEqual({
        code: 69,
        stderr: 'klatch: the server runs, but its database does not answer: `klatch doctor` says why\n',
      });
      expect(stdout).toMatch(
        /^server: +Klatch \S+, pid \d+, not ready\n[^]*\ndatabase: +PostgreSQL \S+, does not answer\n/,
      );
      expect(stdout).toMatch(/\nhooks: +\d+ active/);
      const json = await workspace.run(['status', '--json']);
      expect(JSON.parse(json.stdout)).toMatchObject({ state: 'database away', ready: false });
      const waiting = workspace.run(['ready', '--wait', '30']);
      await proxy.forward();
      expect(await waiting).toMatchObject({ code: 0, stderr: '' });
    } finally {
      await proxy.stop();
    }
  });
});

describe('the status of a server that does not answer says why', () => {
  test('none was ever started', async () => {
    const { line, json, reason } = await down();
    expect(line).toBe('does not run: none has been started with this data directory');
    expect(json).toEqual({
      state: 'never started',
      ready: false,
      data_dir: workspace.dataDir,
      pid: null,
      last_run: null,
      blockers: [],
    });
    expect(reason).toMatch(NOBODY);
  });

  test('it is starting: it waits for another node that migrates; ready --wait waits with it', async () => {
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
        const { line, json, reason } = await down();
        expect(line).toMatch(
          new RegExp(`^starting \\(pid ${server.pid}\\) for \\d+ s: it opens its database or brings it up to date$`),
        );
        expect(json).toMatchObject({ state: 'starting', pid: server.pid, blockers: [] });
        expect(reason).toMatch(
          /^klatch: the Klatch with the data directory .* is not ready: it is starting \(pid \d+\)/,
        );
      });
      expect(await workspace.run(['ready', '--wait', '30'])).toMatchObject({ code: 0, stderr: '' });
    } finally {
      await empty.drop();
    }
  });

  test('it is stopping: a request holds it up', async () => {
    const { server, url } = await workspace.serve();
    const held = await holdRequest(url);
    server.process.kill('SIGTERM');
    await server.event('stopping');
    const text = await eventually(
      () => workspace.run(['status']),
      ({ stdout }) => stdout.startsWith('server: stopping'),
    );
    expect(text.stdout).toMatch(/^server: stopping \(pid \d+\) for \d+ s: it finishes what is in hand\n$/);
    held.destroy();
    expect(await server.ended).toMatchObject({ code: 0 });
  });

  test('it was stopped, by which signal and when', async () => {
    const { server } = await workspace.serve();
    server.process.kill('SIGTERM');
    await server.ended;
    const { line, json, reason, all } = await down();
    expect(line).toMatch(/^does not run: it was stopped \d+ s ago by SIGTERM$/);
    expect(json).toMatchObject({
      state: 'stopped',
      pid: null,
      last_run: { state: 'stopped', pid: server.pid, reason: 'SIGTERM', exit_code: 0 },
    });
    expect(all).toMatch(new RegExp(`\\nlast run: Klatch \\S+, pid ${server.pid}, from \\S+Z to \\S+Z\\n$`));
    expect(reason).toMatch(NOBODY);
  });

  test('it was killed, and when it was last seen alive', async () => {
    const { server } = await workspace.serve();
    await server.stop();
    const { line, json } = await down();
    expect(line).toMatch(/^does not run: it was killed, or its machine stopped; last seen alive \d+ s ago$/);
    const { state, last_run: run } = json;
    expect({ state, recorded: run.state, pid: run.pid }).toEqual({
      state: 'killed',
      recorded: 'ready',
      pid: server.pid,
    });
    expect(Date.now() - Date.parse(run.last_seen_at as string)).toBeLessThan(30_000);
  });

  test('it failed to start: the reason, and whether it would again', async () => {
    const taken = createServer((socket) => socket.destroy()).listen(0, '127.0.0.1');
    await once(taken, 'listening');
    const { port } = taken.address() as AddressInfo;
    try {
      await workspace.configure(database.target, [`http.port = ${port}`]);
      expect(await workspace.run(['serve'])).toMatchObject({ code: 73 });
      const { line, all, json } = await down();
      expect(line).toMatch(/^does not run: it failed \d+ s ago with exit status 73: another program listens on /);
      const obstacle = `another program listens on 127.0.0.1:${port}: node (pid ${process.pid})`;
      expect(all).toContain(`\nin the way of a start:\n  ${obstacle}\n  -> Stop it, `);
      expect(json).toMatchObject({ state: 'failed', blockers: [{ check: 'server', level: 'error' }] });
    } finally {
      taken.close();
      await once(taken, 'close');
    }
    expect((await down()).json).toMatchObject({ state: 'failed', blockers: [] });
  });

  test('it could not go on, since a newer Klatch changed the schema', async () => {
    const shared = await createTestDatabase();
    try {
      await workspace.configure(shared.target);
      const { server } = await workspace.serve();
      await shared.query((sql) => sql`insert into schema_version (version, name) values (9999, 'future')`);
      expect(await server.ended).toMatchObject({ code: 76 });
      const { line, json } = await down();
      expect(line).toMatch(/^does not run: it failed \d+ s ago with exit status 76: the database is at schema 9999 /);
      expect(json).toMatchObject({ blockers: [{ found: expect.stringContaining('at schema 9999') }] });
    } finally {
      await shared.drop();
    }
  });

  test('it crashed', async () => {
    const script = 'process.on("SIGUSR2", () => { Promise.reject(new Error("boom")) })';
    const fault = `data:text/javascript,${encodeURIComponent(script)}`;
    const server = workspace.start(['serve'], { NODE_OPTIONS: `--import=${fault}` });
    await server.event('ready');
    server.process.kill('SIGUSR2');
    await server.ended;
    expect((await down()).line).toMatch(/^does not run: it failed \d+ s ago with exit status 70: .*boom/);
  });

  test('the database is away, and would be at the next start', async () => {
    const proxy = await DatabaseProxy.start(database.target);
    await workspace.configure({ ...database.target, ...proxy.address });
    const { server } = await workspace.serve();
    await proxy.stop();
    server.process.kill('SIGTERM');
    await server.ended;
    const { all, json } = await down();
    expect(all).toMatch(/\nin the way of a start:\n {2}cannot connect to the database: .*ECONNREFUSED/);
    expect(json).toMatchObject({ state: 'stopped', blockers: [{ check: 'database' }] });
  });

  test('the configuration has mistakes by now', async () => {
    await workspace.configure(database.target, ['http.port = high']);
    const { all, json } = await down();
    expect(all).toMatch(/\nin the way of a start:\n {2}.*server\.conf:\d+:\d+: http\.port: expected a port number/);
    expect(json).toMatchObject({ blockers: [{ check: 'configuration' }] });
  });

  test('it runs and does not answer', async () => {
    const { server } = await workspace.serve();
    server.process.kill('SIGSTOP');
    try {
      const { line, json, reason } = await down();
      expect(line).toMatch(/^runs \(pid \d+\) and does not answer on its control socket$/);
      expect(json).toMatchObject({ state: 'unresponsive' });
      expect(reason).toMatch(/is not ready: it runs \(pid \d+\) and does not answer/);
    } finally {
      server.process.kill('SIGCONT');
    }
  });

  test('another process, which is no server, has the data directory', async () => {
    const empty = await createTestDatabase({ empty: true });
    try {
      await workspace.configure(empty.target);
      await empty.query(async (sql) => {
        await sql`select pg_advisory_lock(${MIGRATION_LOCK})`;
        const migrating = workspace.start(['migrate']);
        await eventually(
          () => waitingForLock(sql),
          (waiting) => waiting.length > 0,
        );
        const { line, json } = await down();
        expect(line).toBe(`does not run: another process (pid ${migrating.pid}) uses its data directory`);
        expect(json).toMatchObject({ state: 'locked', blockers: [] });
      });
    } finally {
      await empty.drop();
    }
  });
});

describe('the record of a run', () => {
  test('keeps no server from its work where it cannot be written', async () => {
    await mkdir(join(workspace.dataDir, 'server-state.json'), { recursive: true });
    const { server } = await workspace.serve();
    expect(await server.event('the record of this run cannot be written')).toMatchObject({ level: 40 });
    expect(await workspace.run(['status'])).toMatchObject({ code: 0 });
    server.process.kill('SIGTERM');
    expect(await server.ended).toMatchObject({ code: 0 });
  });

  test('is not touched by a start that finds the data directory in use', async () => {
    const { server } = await workspace.serve();
    const file = join(workspace.dataDir, 'server-state.json');
    const before = await readFile(file, 'utf8');
    expect(await workspace.run(['serve'])).toMatchObject({ code: 75 });
    expect(await readFile(file, 'utf8')).toBe(before);
    expect(readLastRun(workspace.dataDir)).toMatchObject({ state: 'ready', pid: server.pid });
  });

  test('says that a second signal ended it', async () => {
    const { server, url } = await workspace.serve();
    const held = await holdRequest(url);
    server.process.kill('SIGTERM');
    await server.event('stopping');
    const asking = setInterval(() => server.process.kill('SIGINT'), 100);
    const { code } = await server.ended;
    clearInterval(asking);
    held.destroy();
    expect(code).toBe(130);
    const reason = 'stopped at once by a second SIGINT';
    expect(readLastRun(workspace.dataDir)).toMatchObject({ state: 'failed', reason, exit_code: 130 });
  });

  test('is not believed when it cannot be read', async () => {
    await mkdir(workspace.dataDir);
    expect(readLastRun(workspace.dataDir)).toBeNull();
    expect((await down()).json).toMatchObject({ state: 'never started', last_run: null });
  });
});
