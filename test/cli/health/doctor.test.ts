import { once } from 'node:events';
import { chmod, symlink } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { checkNames, type Finding } from '../../../src/doctor/finding.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { eventually } from '../../support/eventually.ts';
import { within } from '../../run/machine-speed.ts';
import { Receiver } from '../../support/receiver.ts';
import { freePort } from '../../support/ports.ts';
import { postJson, TestServer } from '../../support/server.ts';
import { SECRET, Workspace } from '../program.ts';

interface Report {
  readonly ok: boolean;
  readonly errors: number;
  readonly warnings: number;
  readonly findings: readonly Finding[];
}

let database: TestDatabase;
let workspace: Workspace;

// Each test gets a new database. The leases of a killed server last 10 s, and deliveries of the next server on the same
// database would wait for them.
beforeEach(async () => {
  database = await createTestDatabase();
  workspace = await Workspace.create();
});

afterEach(async () => {
  await workspace.remove();
  await database.drop();
});

/**
 * Runs `klatch doctor` and returns its findings by check. Expects that its exit code and its counts agree with them.
 */
async function examine(env: NodeJS.ProcessEnv = {}): Promise<(check: string) => readonly Finding[]> {
  const { code, stdout, stderr } = await workspace.run(['doctor', '--json'], env);
  const { ok, errors, warnings, findings } = JSON.parse(stdout) as Report;
  expect(findings.filter(({ level }) => level === 'error')).toHaveLength(errors);
  expect(findings.filter(({ level }) => level === 'warning')).toHaveLength(warnings);
  expect({ ok, code }).toEqual(errors === 0 ? { ok: true, code: 0 } : { ok: false, code: 1 });
  if (errors > 0) expect(stderr).toBe(`klatch: doctor found ${errors} error${errors === 1 ? '' : 's'}\n`);
  for (const { level, todo } of findings) expect(todo !== null).toBe(level === 'warning' || level === 'error');
  return (check) => findings.filter((finding) => finding.check === check);
}

describe('doctor beside a running server', () => {
  test('names settings of the database that can lose messages, and ends with 1', async () => {
    await workspace.configure(database.target);
    await workspace.serve();
    const found = await examine();
    // The command warns because the database of the tests does not wait for the disk.
    expect(found('database').map((each) => each.found)).toEqual([
      expect.stringMatching(/^fsync is off/),
      expect.stringMatching(/^full_page_writes is off/),
    ]);
    expect(found('server')).toMatchObject([{ level: 'ok', found: expect.stringMatching(/runs \(pid \d+\)/) }]);
    expect(found('open files')).toMatchObject([{ found: expect.stringMatching(/^\d+ files open, at most \d+;/) }]);
    expect(found('address policy')).toMatchObject([{ level: 'ok' }]);
    expect(found('hooks')).toMatchObject([{ level: 'ok' }]);
    expect(found('push')).toMatchObject([{ level: 'ok', found: expect.stringMatching(/^nothing is configured/) }]);
    // Registers a device of Google, whose keys the configuration lacks, as if they had been removed.
    await database.query(
      (sql) => sql`
        with made as (insert into account (kind, nick, name, role) values ('user', 'ann', 'Ann', 'user') returning id),
          session as (insert into session (account_id, token_hash, label) select id, 'x', 'x' from made
            returning id, account_id)
        insert into device (account_id, session_id, kind, token_hash, token_sealed)
        select account_id, id, 'google', 'x', 'x' from session`,
    );
    expect((await examine())('push')).toMatchObject([
      { level: 'warning', found: expect.stringMatching(/^1 device of google is told nothing/) },
    ]);
  });

  test('tells the hosts that the address policy refuses, failing hooks, and a changed file; and shows no secret', async () => {
    const port = await freePort();
    const lines = ['delivery.retry = [10ms]', `http { port = ${port}, base-uri = "http://127.0.0.1:${port}" }`];
    await workspace.configure(database.target, lines);
    await workspace.serve();
    const receiver = await Receiver.start(() => 503);
    try {
      const created = await workspace.run(['group', 'create', 'Failing', '--json']);
      const { id, webhook } = JSON.parse(created.stdout) as { id: number; webhook: string };
      const target = receiver.url('/very-private?key=hunter2');
      const registered = await postJson(`${webhook}/reverse`, { url: target });
      expect(registered.status).toBe(201);
      const hook = (registered.body as { id: number }).id;
      await postJson(webhook, { text: 'to be refused' });
      await eventually(
        async () => (await fetch(`${webhook}/reverse/${hook}`).then((answer) => answer.json())) as { state: string },
        ({ state }) => state === 'failing',
      );
      // The hook looks as if it had been registered when the server still had a signing key.
      await database.query((sql) => sql`update reverse_hook set signature = 'both'`);
      await workspace.configure(database.target, [...lines, 'delivery.allow = []', 'log.level = warn']);
      const found = await examine();
      expect(found('base-uri')).toMatchObject([{ level: 'ok' }]);
      expect(found('address policy')).toMatchObject([
        {
          level: 'warning',
          found: `the address policy refuses 127.0.0.1 (loopback): hook ${hook}`,
          todo: expect.stringContaining('delivery.allow'),
        },
      ]);
      expect(found('hooks')).toMatchObject([
        {
          level: 'warning',
          found: expect.stringMatching(
            new RegExp(`^hook ${hook} of group ${id} to 127\\.0\\.0\\.1:\\d+ is failing since .*: status 503$`),
          ),
        },
      ]);
      expect(found('server keys')).toMatchObject([{ level: 'warning', found: expect.stringMatching(/^1 hook asked/) }]);
      expect(found('server')).toMatchObject([{ found: expect.stringContaining('was changed after') }]);
      await database.query(
        (sql) => sql`update reverse_hook set removed_at = now() - interval '29 days', removed_by = 'target'`,
      );
      expect((await examine())('hooks')).toMatchObject([
        {
          level: 'warning',
          found: '1 hook removed by a 410 of the target in the last 30 days',
          todo: expect.stringContaining('klatch hook restore'),
        },
      ]);
      await database.query((sql) => sql`update reverse_hook set removed_at = now() - interval '31 days'`);
      expect((await examine())('hooks')).toMatchObject([{ level: 'ok' }]);
      await database.query((sql) => sql`update reverse_hook set removed_at = null, removed_by = null`);
      const { stdout, stderr } = await workspace.run(['doctor']);
      const token = webhook.split('/').at(-1)!;
      for (const hidden of ['very-private', 'hunter2', token, SECRET]) expect(stdout + stderr).not.toContain(hidden);
    } finally {
      await receiver.stop();
    }
  });

  test('names groups that refused posts, with the reason', async () => {
    await workspace.configure(database.target);
    const { url } = await workspace.serve();
    const created = await workspace.run(['group', 'create', 'Alerts', '--json']);
    const { id, webhook } = JSON.parse(created.stdout) as { id: number; webhook: string };
    expect((await examine())('refused posts')).toMatchObject([{ level: 'ok' }]);
    expect((await postJson(url + new URL(webhook).pathname, { text: '' })).status).toBe(400);
    const found = await eventually(
      async () => (await examine())('refused posts'),
      ([first]) => first?.level === 'warning',
    );
    expect(found).toMatchObject([
      {
        found: expect.stringMatching(new RegExp(`^group ${id} refused 1 post since .*: text: must hold something`)),
        todo: expect.stringContaining(`"klatch group info ${id}"`),
      },
    ]);
  });

  test('finds the server that runs although the file has mistakes by now', async () => {
    await workspace.configure(database.target);
    await workspace.serve();
    await workspace.configure(database.target, ['http.port = high']);
    const found = await examine();
    expect(found('configuration')).toMatchObject([{ level: 'error' }]);
    expect(found('server')).toMatchObject([{ level: 'warning', found: expect.stringContaining('was changed after') }]);
    expect(found('database')).toMatchObject([{ level: 'skipped' }]);
  });

  test('tells that something else answers at base-uri', async () => {
    const other = await TestServer.start();
    try {
      const lines = [`http { port = ${await freePort()}, base-uri = "${other.url}" }`];
      await workspace.configure(database.target, lines);
      await workspace.serve();
      const found = `at ${other.url} something else answers than this server`;
      expect((await examine())('base-uri')).toMatchObject([{ level: 'warning', found }]);
    } finally {
      await other.stop();
    }
  });
});

describe('doctor without a server', () => {
  test('names every mistake of the configuration, beside which nothing else can be looked at', async () => {
    await workspace.write([
      'secret = "short"',
      'http.port = high',
      'http.base-uri = "http://x.example"',
      'data-dir = "data"',
    ]);
    const found = await examine();
    expect(found('configuration')).toMatchObject([
      { level: 'error', found: expect.stringContaining('server.conf:1:10: secret:') },
      { level: 'error', found: expect.stringContaining('server.conf:2:13: http.port:') },
    ]);
    for (const check of checkNames.slice(1)) expect(found(check)).toMatchObject([{ level: 'skipped' }]);
    await workspace.write(['secret = "<SECRET>"', 'data-dir = [1]']);
    expect((await examine())('configuration')).toMatchObject([
      { level: 'error', todo: expect.stringContaining('klatch setup') },
      { level: 'error', found: expect.stringContaining('http.base-uri: is not set') },
      { level: 'error', found: expect.stringContaining('data-dir: expected the path of a folder') },
    ]);
  });

  test('names the key file that cannot be looked at, not the configuration', async () => {
    const loop = join(workspace.folder, 'loop.pem');
    await symlink(loop, loop);
    const pair = `{ public = ${JSON.stringify(loop)}, private = ${JSON.stringify(loop)} }`;
    await workspace.configure(database.target, [`modules.security.server-keys = [${pair}]`]);
    const found = (await examine())('configuration').map((each) => each.found);
    expect(found).toEqual(expect.arrayContaining([expect.stringContaining(`${loop} cannot be read (ELOOP)`)]));
    expect(found.join()).not.toContain('server.conf cannot be read');
  });

  test('names files that others can read or write', async () => {
    await workspace.configure(database.target);
    await chmod(workspace.file, 0o666);
    expect((await examine())('configuration').map(({ found }) => found)).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/can be read by every user/),
        expect.stringMatching(/server\.conf can be written by every user/),
      ]),
    );
    const ofRights = (await examine())('configuration').filter(({ found }) => found.includes('every user'));
    expect(ofRights).toHaveLength(2);
    for (const { todo } of ofRights) expect(todo).toMatch(/chmod/);
  });

  test.each(['http', 'metrics'])(
    'names a program that has the port of %s, before and after a start failed for it',
    async (keys) => {
      const taken = createServer((socket) => socket.destroy()).listen(0, '127.0.0.1');
      await once(taken, 'listening');
      const { port } = taken.address() as AddressInfo;
      const obstacle = {
        level: 'error',
        found: `another program listens on 127.0.0.1:${port}: node (pid ${process.pid})`,
        todo: `Stop it, or choose another port (${keys}.interface, ${keys}.port).`,
      };
      try {
        await workspace.configure(database.target, [
          `${keys}.port = ${port}`,
          ...(keys === 'metrics' ? ['metrics.enabled = true'] : []),
        ]);
        expect((await examine())('server')).toMatchObject([{ level: 'skipped' }, obstacle]);
        expect(await workspace.run(['serve'])).toMatchObject({ code: 73 });
        expect((await examine())('server')).toMatchObject([
          { level: 'error', found: expect.stringMatching(/exit status 73: another program/), todo: obstacle.todo },
          obstacle,
        ]);
      } finally {
        taken.close();
        await once(taken, 'close');
      }
      expect((await examine())('server')).toMatchObject([
        { level: 'warning', todo: expect.stringMatching(/^Its cause is not there any more\. Start it/) },
      ]);
    },
  );

  test('tells how the last run ended: killed, or by another secret, with what to do', async () => {
    await workspace.configure(database.target);
    const { server } = await workspace.serve();
    await server.stop();
    expect((await examine())('server')).toMatchObject([
      {
        level: 'warning',
        found: expect.stringContaining('killed'),
        todo: expect.stringMatching(/^Start it: "klatch serve"/),
      },
    ]);
    await workspace.configure(database.target, ['secret = "another secret, as long as it has to be at least"']);
    expect(await workspace.run(['serve'])).toMatchObject({ code: 77 });
    expect((await examine())('server')).toMatchObject([
      {
        level: 'error',
        found: expect.stringContaining('exit status 77'),
        todo: expect.stringContaining('old value of `secret`'),
      },
    ]);
  });

  test('looks at the database by itself, and changes nothing in it', async () => {
    const empty = await createTestDatabase({ empty: true });
    try {
      await workspace.configure(empty.target);
      const found = await examine();
      expect(found('server')).toMatchObject([{ level: 'skipped' }]);
      expect(found('clock')).toMatchObject([{ level: 'ok', found: expect.stringContaining('agrees within') }]);
      expect(found('hooks')).toMatchObject([{ level: 'skipped' }]);
      expect(found('data directory')).toMatchObject([{ level: 'ok', found: expect.stringContaining('is not there') }]);
      const [row] = await empty.query((sql) => sql`select to_regclass('schema_version') is null as untouched`);
      expect(row).toEqual({ untouched: true });
    } finally {
      await empty.drop();
    }
  });

  test('says that the database is away, within its time', async () => {
    const port = await freePort();
    await workspace.configure({ ...database.target, host: '127.0.0.1', port });
    const started = performance.now();
    expect((await examine())('database')).toMatchObject([
      {
        level: 'error',
        found: `cannot connect to the database: connect ECONNREFUSED 127.0.0.1:${port}`,
        todo: expect.stringContaining('services.postgresql'),
      },
    ]);
    expect(performance.now() - started).toBeLessThan(within(10_000));
  });

  test('gives up on a database that takes the connection and says nothing', async () => {
    const silent = createServer((socket) => {
      socket.on('error', () => socket.destroy());
      silent.once('stop', () => socket.destroy());
    }).listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const { port } = silent.address() as AddressInfo;
    await workspace.configure({ ...database.target, host: '127.0.0.1', port }, [
      'services.postgresql.connect-timeout = 1m',
    ]);
    const found = 'no answer from the database within 3000 ms';
    expect((await examine())('database')).toMatchObject([{ level: 'error', found }]);
    silent.emit('stop');
    silent.close();
    await once(silent, 'close');
  });

  test('goes on where a folder cannot be there at all', async () => {
    await workspace.configure(database.target, [
      `data-dir = ${JSON.stringify(join(workspace.file, 'data'))}`,
      'services.postgresql.embedded = true',
    ]);
    const found = await examine();
    expect(found('data directory')).toMatchObject([{ level: 'error', found: expect.stringContaining('(ENOTDIR)') }]);
    expect(found('database')).toMatchObject([{ level: 'error', found: 'could not be looked at (ENOTDIR)' }]);
    expect(found('disk')).toHaveLength(1);
    expect(found('open files')).toHaveLength(1);
    const { code, stdout } = await workspace.run(['status']);
    expect(code).toBe(69);
    expect(stdout).toMatch(/\nin the way of a start:\n {2}.* cannot be reached \(ENOTDIR\)\n/);
  });

  test('says what would keep an embedded database from starting', async () => {
    await workspace.configure(database.target, [
      `services.postgresql = { embedded = true, bin-dir = ${JSON.stringify(join(workspace.folder, 'nowhere'))} }`,
    ]);
    expect((await examine())('database')).toMatchObject([
      { level: 'error', found: expect.stringContaining('services.postgresql.bin-dir is') },
    ]);
  });
});
