import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { chmod, copyFile, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { postJson } from '../support/server.ts';
import { root, SECRET, Workspace, type Program } from '../cli/program.ts';

/** The folder of Debian's PostgreSQL programs, which include pg_dump; those from npm do not. */
const BIN_DIR = '/usr/lib/postgresql/15/bin';
const page = readFileSync(join(root, 'docs/backup.md'), 'utf8');

let source: Workspace;
let target: Workspace;
let dump: string;
let folder: string;

beforeEach(async () => {
  source = await Workspace.create();
  target = await Workspace.create();
  // PostgreSQL does not run as root, and has to reach the data directories in these folders.
  for (const workspace of [source, target]) await chmod(workspace.folder, 0o711);
  folder = await mkdtemp(join(tmpdir(), 'klatch-backup-'));
  dump = join(folder, 'klatch.dump');
});

afterEach(async () => {
  await source.remove();
  await target.remove();
  await rm(folder, { recursive: true, force: true });
});

/** Runs the commands after a mark of the page, with the folders of the test instead of those of the page. */
async function runFromPage(mark: string, workspace = source): Promise<void> {
  const block = new RegExp(`<!-- commands: ${mark} -->\n\n *\`\`\`sh\n([^]*?)\`\`\``).exec(page)?.[1];
  if (block === undefined) throw new Error(`docs/backup.md has no commands "${mark}"`);
  const script = block
    .replaceAll('/var/lib/klatch-new', target.dataDir)
    .replaceAll('/var/lib/klatch', source.dataDir)
    .replaceAll('/var/backups', folder)
    .replaceAll('/root/klatch-conf', join(folder, 'conf'))
    .replaceAll('klatch.dump', dump)
    .replaceAll('=klatch.tar', `=${join(folder, 'klatch.tar')}`);
  const env = {
    ...process.env,
    PATH: `${join(root, 'bin')}:${BIN_DIR}:${process.env['PATH'] ?? ''}`,
    KLATCH_CONFIG: workspace.file,
  };
  const shell = spawn('/bin/sh', ['-euc', script], { env, stdio: ['ignore', 'ignore', 'pipe'] });
  let stderr = '';
  shell.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const [code] = (await once(shell, 'close')) as [number];
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
}

async function configure(...lines: string[]): Promise<void> {
  await source.write([
    `secret = "${SECRET}"`,
    'http { port = 0, base-uri = "http://127.0.0.1" }',
    'metrics.port = 0',
    'endpoints = []',
    'data-dir = "data"',
    'services.postgresql.embedded = true',
    'delivery.allow = ["loopback"]',
    ...lines,
  ]);
  // The paths in the configuration are relative, so the copy refers to the new folder.
  await copyFile(source.file, target.file);
}

async function stop(server: Program): Promise<void> {
  server.process.kill('SIGTERM');
  expect(await server.ended).toMatchObject({ code: 0 });
}

/** Creates a group with three messages and a hook. Resolves with the path of its webhook. */
async function fill(url: string): Promise<string> {
  const { stdout } = await source.run(['group', 'create', 'Kept', '--json']);
  const { pathname } = new URL((JSON.parse(stdout) as { webhook: string }).webhook);
  for (const text of ['one', 'two', 'three']) await postJson(url + pathname, { text });
  const hook = await postJson(`${url + pathname}/reverse`, { url: 'http://127.0.0.1:9/hook' });
  expect(hook.status).toBe(201);
  return pathname;
}

/** Checks that the restored server knows the token of the group, continues after its last message, and has its hook. */
async function expectRestored(pathname: string, id: unknown = '1:4'): Promise<Program> {
  const { server, url } = await target.serve();
  expect(await postJson(url + pathname, { text: 'four' })).toMatchObject({ status: 200, body: { id } });
  const { stdout } = await target.run(['group', 'info', 'Kept', '--json']);
  expect(JSON.parse(stdout)).toMatchObject({ messages: 4, hooks: [{ url: 'http://127.0.0.1:9/hook' }] });
  expect(await target.run(['doctor'])).toMatchObject({ stderr: '', code: 0 });
  return server;
}

test('a backup of the running server is restored on another machine, as the page says step by step', async () => {
  await configure();
  const { server, url } = await source.serve();
  const pathname = await fill(url);
  await runFromPage('backup');
  // The backup does not contain later messages.
  expect(await postJson(url + pathname, { text: 'later' })).toMatchObject({ body: { id: '1:4' } });
  await stop(server);
  await rm(target.file);
  await runFromPage('configuration', target);
  const text = await readFile(join(folder, 'conf/server.conf'), 'utf8');
  expect(text).toContain('<SERVER_SECRET>');
  await target.write([text.replace('<SERVER_SECRET>', SECRET)]);
  await runFromPage('restore', target);
  // The log of the restored server has a new epoch, so that no id repeats that of a lost message.
  await stop(await expectRestored(pathname, expect.stringMatching(/^1:4\.\d{8}$/)));
});

test('a copy of the stopped data directory makes the same server elsewhere', async () => {
  await configure();
  const { server, url } = await source.serve();
  const pathname = await fill(url);
  await stop(server);
  await runFromPage('cold copy');
  await runFromPage('cold restore');
  await stop(await expectRestored(pathname));
});

(existsSync(join(BIN_DIR, 'pg_dump')) ? describe : describe.skip)('with pg_dump', () => {
  test('a dump of the running embedded database is restored into a new data directory', async () => {
    await configure(`services.postgresql.bin-dir = "${BIN_DIR}"`);
    const { server, url } = await source.serve();
    const pathname = await fill(url);
    await runFromPage('embedded dump');
    // The dump does not contain later messages.
    expect(await postJson(url + pathname, { text: 'later' })).toMatchObject({ body: { id: '1:4' } });
    const empty = await target.serve();
    await runFromPage('embedded restore');
    await stop(empty.server);
    await runFromPage('embedded files');
    await stop(await expectRestored(pathname));
    await stop(server);
  });

  test('the dump moves to another major version of PostgreSQL', async () => {
    await configure(`services.postgresql.bin-dir = "${BIN_DIR}"`);
    const { server, url } = await source.serve();
    const pathname = await fill(url);
    await runFromPage('embedded dump');
    await stop(server);
    await configure();
    const empty = await target.serve();
    const { stdout } = await target.run(['status']);
    expect(stdout).not.toContain('PostgreSQL 15');
    await runFromPage('embedded restore');
    await stop(empty.server);
    await runFromPage('embedded files');
    await stop(await expectRestored(pathname));
  });
});
