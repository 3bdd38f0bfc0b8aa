import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { chmod, copyFile, cp, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { eventually } from '../../support/eventually.ts';
import { Receiver } from '../../support/receiver.ts';
import { postJson } from '../../support/server.ts';
import { describeSchema } from '../../storage/schema.ts';
import { holdOpen, isWaiting, until } from '../../storage/fixture.ts';
import { SECRET, Workspace, type Program } from '../program.ts';

let source: Workspace;
let target: Workspace;
let receiver: Receiver;
let file: string;

beforeEach(async () => {
  source = await Workspace.create();
  target = await Workspace.create();
  // PostgreSQL does not run as root, and has to reach the data directories in these folders.
  for (const workspace of [source, target]) await chmod(workspace.folder, 0o711);
  receiver = await Receiver.start();
  file = join(source.folder, 'klatch.tar.gz');
});

afterEach(async () => {
  await source.remove();
  await target.remove();
  await receiver.stop();
});

/** Configures both workspaces with an embedded database of their own, and with the same secret. */
async function configureEmbedded(): Promise<void> {
  await source.write([
    `secret = "${SECRET}"`,
    'http { port = 0, base-uri = "http://127.0.0.1" }',
    'metrics.port = 0',
    'endpoints = []',
    'data-dir = "data"',
    'services.postgresql.embedded = true',
    'delivery.allow = ["loopback"]',
  ]);
  await copyFile(source.file, target.file);
}

async function end(program: Program, signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
  program.process.kill(signal);
  await program.ended;
}

async function createGroup(workspace: Workspace): Promise<string> {
  const { stdout } = await workspace.run(['group', 'create', 'Kept', '--json']);
  return new URL((JSON.parse(stdout) as { webhook: string }).webhook).pathname;
}

const statusOf = async (post: Promise<{ status: number }>): Promise<number> => (await post).status;

describe('a server that is backed up while it works', () => {
  test('goes on elsewhere: a log without gaps, and the backlog delivered once and in order', async () => {
    await configureEmbedded();
    const { server, url } = await source.serve();
    const path = await createGroup(source);
    const hook = await postJson(`${url + path}/reverse`, { url: receiver.url() });
    expect(hook.status).toBe(201);
    for (const text of ['one', 'two']) await postJson(url + path, { text });
    await receiver.received(2);
    // Waits until the deliveries are settled: otherwise the restored server may send the messages again.
    const health = `${url + path}/reverse/1`;
    const pending = async (): Promise<number> => ((await (await fetch(health)).json()) as { pending: number }).pending;
    await eventually(pending, (count) => count === 0);
    await fetch(health, {
      method: 'PATCH',
      body: '{"paused":true}',
      headers: { 'content-type': 'application/json' },
    });

    const stop = new AbortController();
    const answers: number[] = [];
    const posting = (async () => {
      while (!stop.signal.aborted) answers.push(await statusOf(postJson(url + path, { text: `${answers.length}` })));
    })();
    await eventually(
      async () => answers.length,
      (count) => count > 50,
    );
    const backup = await source.run(['backup', file, '--json']);
    expect(backup).toMatchObject({ code: 0, stderr: '' });
    const later = answers.length;
    await eventually(
      async () => answers.length,
      (count) => count > later + 50,
    );
    stop.abort();
    await posting;
    expect(new Set(answers)).toEqual(new Set([200]));
    await end(server);
    const { rows } = JSON.parse(backup.stdout) as { rows: Record<string, number> };
    expect(rows['message']).toBeGreaterThan(50);
    expect(rows['message']).toBeLessThan(answers.length + 2);
    expect((await stat(file)).mode & 0o777).toBe(0o600);

    const restored = await target.run(['restore', file]);
    expect(restored).toMatchObject({ code: 0, stderr: '' });
    const second = await target.serve();
    await fetch(`${second.url + path}/reverse/1`, {
      method: 'PATCH',
      body: '{"paused":false}',
      headers: { 'content-type': 'application/json' },
    });
    await receiver.received(rows['message']!);
    // The old token is valid, and the log continues after its last message.
    const next = rows['message']! + 1;
    expect(await postJson(second.url + path, { text: 'next' })).toMatchObject({
      status: 200,
      body: { id: expect.stringMatching(new RegExp(`^1:${next}\\.[0-9]{8,}$`)) },
    });
    await receiver.received(next);
    expect(receiver.seqs()).toEqual(Array.from({ length: next }, (_, index) => index + 1));
    expect(new Set(receiver.arrivals.map(({ headers }) => headers['webhook-id'])).size).toBe(next);
    expect(await target.run(['doctor'])).toMatchObject({ code: 0 });
    await end(second.server);
  });

  test('is backed up as well when it is stopped, and neither starts nor loses anything by it', async () => {
    await configureEmbedded();
    const nothing = await source.run(['backup', file]);
    expect(nothing).toMatchObject({ code: 1, stderr: expect.stringContaining('There is no database in') });
    expect(existsSync(file) || existsSync(`${file}.partial`) || existsSync(source.dataDir)).toBe(false);
    const { server, url } = await source.serve();
    const path = await createGroup(source);
    await postJson(url + path, { text: 'one' });
    await end(server);
    const backup = await source.run(['backup', file]);
    expect(backup).toMatchObject({ code: 0, stderr: '' });
    expect(backup.stdout).toContain('Not in it, keep these elsewhere (or give --with-secrets):\n  secret\n');
    expect(existsSync(join(source.dataDir, 'postgresql/postmaster.pid'))).toBe(false);
    expect(await source.run(['backup', file])).toMatchObject({ code: 1, stderr: expect.stringContaining('--force') });
    expect(await source.run(['backup', file, '--force'])).toMatchObject({ code: 0 });
    const again = await source.serve();
    expect(await postJson(again.url + path, { text: 'two' })).toMatchObject({ body: { id: '1:2' } });
    // The command also refuses to load a backup over a database in use.
    expect(await source.run(['restore', file])).toMatchObject({ code: 75 });
    await end(again.server);
    const full = await source.run(['restore', file]);
    expect(full).toMatchObject({ code: 1, stderr: expect.stringContaining('The database is not empty (account') });
    expect(await source.run(['restore', '--check', file])).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('It is whole.'),
    });
  });
});

describe('an end in the middle', () => {
  let database: TestDatabase;
  let empty: TestDatabase;

  beforeEach(async () => {
    database = await createTestDatabase();
    empty = await createTestDatabase({ empty: true });
    await source.configure(database.target);
    await target.configure(empty.target);
    await source.run(['migrate']);
    await database.query(
      (sql) => sql`
        insert into message (conversation_id, seq, rev, sender_id, text, sent_at)
        select 1, n, n, 1, repeat(md5(n::text), 40), now() from generate_series(1, 20000) n`,
    );
  });
  afterEach(async () => {
    await database.drop();
    await empty.drop();
  });

  test('of a backup leaves no file under its name: with a signal none at all, and a killed one is no obstacle', async () => {
    const { server, url } = await source.serve();
    for (const [signal, left] of [
      ['SIGTERM', []],
      ['SIGKILL', ['klatch.tar.gz.partial']],
    ] as const) {
      // The backup reads this table for its header, before it copies any rows, and waits there for the lock.
      const held = await holdOpen(database.target, (tx) => tx`lock table setting in access exclusive mode`);
      const backup = source.start(['backup', file]);
      await until(database, (sql) => isWaiting(sql, 'backup'));
      const ended = once(backup.process, 'close');
      backup.process.kill(signal);
      expect(await ended).toEqual([null, signal]);
      await held.release();
      const files = await readdir(source.folder);
      expect(files.filter((name) => name.startsWith('klatch.tar'))).toEqual(left);
    }
    // The database session of the killed process has ended too, and the source server still works.
    expect((await fetch(`${url}/v1/ready`)).status).toBe(200);
    expect(await source.run(['backup', file])).toMatchObject({ code: 0, stderr: '' });
    expect(existsSync(`${file}.partial`)).toBe(false);
    await end(server);
  });

  test('of a restore leaves the database empty, and it can be repeated', async () => {
    await source.run(['backup', file]);
    const bytes = await readFile(file);
    const schema = await database.query(describeSchema);
    for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
      const restore = target.open(['restore', '-']);
      restore.process.stdin!.write(bytes.subarray(0, bytes.length * 0.7));
      // The copy of rows is running. Another session sees none of the rows, only that the copy runs.
      await until(empty, async (sql) => {
        const rows = await sql`
            select from pg_stat_activity where datname = current_database() and application_name = 'klatch restore'
              and query like 'copy "message"%'`;
        return rows.length > 0;
      });
      const ended = once(restore.process, 'close');
      restore.process.kill(signal);
      expect(await ended).toEqual([null, signal]);
      await until(empty, async (sql) => {
        const rows = await sql`select from pg_stat_activity where application_name = 'klatch restore'`;
        return rows.length === 0;
      });
      expect(await empty.query(describeSchema)).toBe('');
    }
    const truncated = await target.pipe(bytes.subarray(0, -100), ['restore', '-']);
    expect(truncated).toMatchObject({ code: 1, stderr: expect.stringContaining('This backup is truncated') });
    // A named pipe can be read only once, and only from its beginning to its end.
    const pipe = join(target.folder, 'pipe');
    execFileSync('mkfifo', [pipe]);
    const [named] = await Promise.all([target.run(['restore', pipe]), writeFile(pipe, bytes.subarray(0, -100))]);
    expect(named).toEqual(truncated);
    expect(await empty.query(describeSchema)).toBe('');
    expect(await target.pipe(bytes, ['restore', '-'])).toMatchObject({ code: 0, stderr: '' });
    expect(await empty.query(describeSchema)).toBe(schema);
    const [count] = await empty.query((sql) => sql`select count(*) as messages from message`);
    expect(count).toEqual({ messages: 20_000 });
  });

  test('of what takes a backup from standard output is told', async () => {
    const backup = source.start(['backup', '-']);
    backup.process.stdout!.once('data', () => backup.process.stdout!.destroy());
    expect(await backup.ended).toMatchObject({ code: 74, stderr: expect.stringContaining('no whole backup') });
  });
});

describe('the configuration in a backup', () => {
  let database: TestDatabase;

  beforeEach(async () => {
    database = await createTestDatabase();
    await source.configure(database.target, ['include "more.conf"', 'http.cors = ["https://a.example"]']);
    await writeFile(join(source.folder, 'more.conf'), 'project-name = "Backed up" # hunter2\n');
    await source.run(['keys', 'generate']);
    await source.configure(database.target, [
      'include "more.conf"',
      'modules.security.server-keys = [{ public = "server-key.public.pem", private = "server-key.private.pem" }]',
    ]);
    await source.run(['migrate']);
  });
  afterEach(async () => database.drop());

  const privateKey = (): Promise<string> => readFile(join(source.folder, 'server-key.private.pem'), 'utf8');

  test('is the settings in force with placeholders, and no secret is in it', async () => {
    await source.run(['backup', file]);
    const plain = gunzipSync(await readFile(file)).toString('latin1');
    for (const secret of [SECRET, (await privateKey()).split('\n')[1]!, 'hunter2']) expect(plain).not.toContain(secret);
    const folder = join(target.folder, 'conf');
    const { code, stdout } = await source.run(['restore', '--config-to', folder, file]);
    expect(code).toBe(0);
    expect(stdout).toContain(`  secret\n  ${join(source.folder, 'server-key.private.pem')}\n`);
    const text = await readFile(join(folder, 'server.conf'), 'utf8');
    expect(text).toContain('secret = "<SERVER_SECRET>"');
    expect(text).toContain('project-name = "Backed up"');
    await copyFile(join(folder, 'server.conf'), target.file);
    expect(await target.run(['config', 'check'])).toMatchObject({
      code: 78,
      stderr: expect.stringContaining('secret: still holds its placeholder'),
    });
    // When the missing value is filled in, the file is a valid configuration.
    await writeFile(target.file, text.replace('<SERVER_SECRET>', SECRET));
    for (const which of ['public', 'private']) {
      await cp(join(source.folder, `server-key.${which}.pem`), join(target.folder, `server-key.${which}.pem`));
    }
    expect(await target.run(['config', 'check'])).toMatchObject({ code: 0 });
    const again = await source.run(['restore', '--config-to', folder, file]);
    expect(again).toMatchObject({ code: 73, stderr: expect.stringContaining('nothing was written') });
    expect(await readFile(join(folder, 'server.conf'), 'utf8')).toBe(text);
  });

  test('with secrets is every file as it was', async () => {
    await source.run(['backup', '--with-secrets', file]);
    const folder = join(target.folder, 'conf');
    expect(await source.run(['restore', '--config-to', folder, file])).toMatchObject({ code: 0 });
    const names = ['more.conf', 'server-key.private.pem', 'server-key.public.pem', 'server.conf'];
    expect((await readdir(folder)).sort()).toEqual(names);
    for (const name of names) {
      expect(await readFile(join(folder, name), 'utf8')).toBe(await readFile(join(source.folder, name), 'utf8'));
    }
    expect((await stat(join(folder, 'server-key.private.pem'))).mode & 0o777).toBe(0o600);
    expect((await stat(join(folder, 'server.conf'))).mode & 0o777).toBe(0o640);
  });

  test('with another secret does not open the database, which then stays empty', async () => {
    await source.run(['backup', file]);
    const empty = await createTestDatabase({ empty: true });
    try {
      await target.configure(empty.target, ['secret = "another secret that is long enough to be taken"']);
      const refused = await target.run(['restore', file]);
      expect(refused).toMatchObject({ code: 77, stderr: expect.stringContaining('Nothing was loaded') });
      expect(await empty.query(describeSchema)).toBe('');
    } finally {
      await empty.drop();
    }
  });
});
