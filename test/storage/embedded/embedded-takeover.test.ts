import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { watch } from 'node:fs';
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, unlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import postgres from 'postgres';
import { startEmbedded, type EmbeddedOptions, type EmbeddedServer } from '../../../src/storage/embedded/embedded.ts';
import { isClusterProcess, waitUntilGone } from '../../../src/storage/embedded/postmaster.ts';
import { waitUntilReady } from '../../../src/storage/embedded/readiness.ts';

const MODULE = new URL('../../../src/storage/embedded/embedded.ts', import.meta.url).href;
const FAST = { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' };

let root: string;
let dataDir: string;
let clusterDir: string;
let servers: EmbeddedServer[] = [];
let children: ChildProcess[] = [];

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'klatch-takeover-'));
  await chmod(root, 0o711);
  dataDir = join(root, 'data');
  clusterDir = join(dataDir, 'postgresql');
});

afterEach(async () => {
  for (const child of children) await kill(child);
  children = [];
  await Promise.all(servers.map((server) => server.stop()));
  servers = [];
  // The removal is retried, since an initdb whose starter was killed may still write.
  await rm(root, { recursive: true, force: true, maxRetries: 10 });
});

async function start(options: Partial<EmbeddedOptions> = {}): Promise<EmbeddedServer> {
  const server = await startEmbedded({ dataDir, binDir: null, log: () => {}, serverSettings: FAST, ...options });
  servers.push(server);
  return server;
}

/** Starts another process that runs `startEmbedded`; it prints "ready". */
function startElsewhere(): ChildProcess {
  const script = `const { startEmbedded } = await import(${JSON.stringify(MODULE)});
    const [dataDir, settings] = process.argv.slice(1);
    await startEmbedded({ dataDir, binDir: null, settings: JSON.parse(settings), log: () => {} });
    process.stdin.resume();
    console.log('ready');`;
  const args = ['--input-type=module', '-e', script, dataDir, JSON.stringify(FAST)];
  const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  children.push(child);
  return child;
}

async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
}

/**
 * Starts a process that creates the files of a cluster, and kills it. Returns false if it had created all of them
 * already.
 */
async function killWhileCreating(): Promise<boolean> {
  await mkdir(dataDir, { mode: 0o711 });
  const child = startElsewhere();
  let folder = '';
  for await (const name of changes(dataDir)) {
    if (!name.startsWith('postgresql.new-')) continue;
    folder = join(dataDir, name);
    break;
  }
  for await (const name of changes(folder)) if (name === 'PG_VERSION') break;
  await kill(child);
  return !(await readdir(dataDir)).includes('postgresql');
}

/** Runs a statement that takes a second or more; resolves when it has ended in any way. */
function startBusyStatement(server: EmbeddedServer): Promise<string> {
  return query(server, (sql) => sql`select count(*) from generate_series(1, 3000000)`).then(
    () => 'done',
    () => 'lost',
  );
}

async function startElsewhereAndKill(): Promise<number> {
  const child = startElsewhere();
  await once(createInterface(child.stdout!), 'line');
  await kill(child);
  return postmasterPid();
}

async function postmasterPid(): Promise<number> {
  return Number.parseInt(await readFile(join(clusterDir, 'postmaster.pid'), 'utf8'), 10);
}

async function query<T>(
  { socketDir: host, port, user, database }: EmbeddedServer,
  work: (sql: postgres.Sql) => Promise<T>,
) {
  const sql = postgres({ host, port, user, database, max: 1, onnotice: () => {} });
  try {
    return await work(sql);
  } finally {
    await sql.end();
  }
}

async function killPostmaster(): Promise<void> {
  const pid = await postmasterPid();
  process.kill(pid, 'SIGKILL');
  expect(await waitUntilGone(pid, clusterDir, 5_000)).toBe(true);
}

describe('after kill -9 of the process that started it', () => {
  test('the running server is taken over, and stopped by the one that took it over', async () => {
    const pid = await startElsewhereAndKill();
    const server = await start();
    expect(server.wasAlreadyRunning).toBe(true);
    expect(await postmasterPid()).toBe(pid);
    expect(await query(server, (sql) => sql`select current_user as who`)).toEqual([{ who: 'klatch' }]);
    await server.stop();
    expect(await isClusterProcess(pid, clusterDir)).toBe(false);
  });

  test('a server whose socket was removed is restarted', async () => {
    const pid = await startElsewhereAndKill();
    await unlink(join(dataDir, 'postgresql.run', '.s.PGSQL.5432'));
    const server = await start();
    expect(server.wasAlreadyRunning).toBe(false);
    expect(await postmasterPid()).not.toBe(pid);
    expect(await query(server, (sql) => sql`select 1 as one`)).toEqual([{ one: 1 }]);
  });

  test('in the middle of creating the files, they are made anew', async () => {
    // On a machine that stalls, the creation may be complete before the kill: then it is repeated.
    while (!(await killWhileCreating())) await rm(dataDir, { recursive: true, force: true, maxRetries: 10 });
    const server = await start();
    expect(server.wasAlreadyRunning).toBe(false);
    expect(await query(server, (sql) => sql`select 1 as one`)).toEqual([{ one: 1 }]);
  });

  test('in the middle of its start, the next start ends up with one server', async () => {
    const first = await start();
    await first.stop();
    const child = startElsewhere();
    // The first change of the pid file comes after the start of the server, and before it is ready.
    for await (const name of changes(clusterDir)) if (name.startsWith('postmaster.pid')) break;
    await kill(child);
    const server = await start();
    expect(await query(server, (sql) => sql`select 1 as one`)).toEqual([{ one: 1 }]);
  });
});

describe('after the server itself was killed', () => {
  test('the next start recovers what was committed', async () => {
    const first = await start({ serverSettings: { ...FAST, synchronous_commit: 'on' } });
    await query(first, (sql) => sql`create table kept as select 42 as value`);
    await killPostmaster();
    const second = await start();
    expect(second.wasAlreadyRunning).toBe(false);
    expect(await query(second, (sql) => sql`select value from kept`)).toEqual([{ value: 42 }]);
  });

  test('the next start waits for a statement that outlived it', async () => {
    const first = await start();
    let ended = startBusyStatement(first);
    await query(first, async (sql) => {
      for (;;) {
        const [row] = await sql`select from pg_stat_activity where state = 'active' and query like '%generate_series(1%'
                                   and pid <> pg_backend_pid()`;
        if (row !== undefined) return;
        if (await Promise.race([ended, Promise.resolve(null)])) ended = startBusyStatement(first);
      }
    });
    await killPostmaster();
    const second = await start();
    expect(await query(second, (sql) => sql`select 1 as one`)).toEqual([{ one: 1 }]);
    await ended;
  });

  test('a pid file that now names another program does not keep it from starting', async () => {
    // When root starts the server in a closed folder, it has the same uid as the other program. Only then does
    // PostgreSQL refuse.
    await chmod(root, 0o700);
    const first = await start();
    const file = join(clusterDir, 'postmaster.pid');
    const content = await readFile(file, 'utf8');
    await first.stop();
    const other = spawn('/bin/sh', ['-c', 'read -r _'], { stdio: ['pipe', 'ignore', 'ignore'] });
    children.push(other);
    await writeFile(file, content.replace(/^\d+/, String(other.pid)), { mode: 0o600 });
    const second = await start();
    expect(second.wasAlreadyRunning).toBe(false);
    expect(await query(second, (sql) => sql`select 1 as one`)).toEqual([{ one: 1 }]);
  });
});

describe('a server that recovers', () => {
  /** Makes the server's pid file say that the server recovers. `isReady` restores the text. */
  async function recovering(): Promise<{ pid: number; isReady: () => Promise<void> }> {
    await start();
    const file = join(clusterDir, 'postmaster.pid');
    const ready = await readFile(file, 'utf8');
    await writeFile(file, ready.replace(/^ready/m, 'starting'));
    return { pid: await postmasterPid(), isReady: () => writeFile(file, ready) };
  }
  const options = (isCancelled: () => boolean) => ({
    clusterDir,
    hasEnded: () => false,
    // This deadline has passed. It does not apply to a server that recovers.
    deadlineMs: performance.now(),
    recoveryDeadlineMs: performance.now() + 30_000,
    isCancelled,
    onProgress: () => {},
  });

  test('is waited for longer than one that starts', async () => {
    const { pid, isReady } = await recovering();
    const waiting = waitUntilReady(
      pid,
      options(() => false),
    );
    expect(await Promise.race([waiting, delay(500, 'waits')])).toBe('waits');
    await isReady();
    expect(await waiting).toMatchObject({ kind: 'ready' });
  });

  test('is left to it by who is told to stop', async () => {
    const { pid, isReady } = await recovering();
    const error = await start({ isCancelled: () => true }).catch((each: unknown) => each);
    expect(error).toMatchObject({ code: 'start-timeout', message: expect.stringContaining('is still starting') });
    expect(await isClusterProcess(pid, clusterDir)).toBe(true);
    await isReady();
  });
});

describe('a running server', () => {
  test('that is shutting down is waited for', async () => {
    const first = await start();
    const pid = await postmasterPid();
    const { socketDir: host, port, user, database } = first;
    const sql = postgres({ host, port, user, database, max: 1 });
    await sql`select 1`;
    // SIGTERM makes PostgreSQL wait for this client before it shuts down (a smart shutdown).
    process.kill(pid, 'SIGTERM');
    for await (const _ of changes(clusterDir)) {
      if ((await readFile(join(clusterDir, 'postmaster.pid'), 'utf8')).includes('stopping')) break;
    }
    const log = (event: string) => {
      if (event === 'waiting for the previous database server to stop') void sql.end();
    };
    const second = await start({ log });
    expect(second.wasAlreadyRunning).toBe(false);
    expect(await postmasterPid()).not.toBe(pid);
  });

  test('is in a session of its own, out of reach of Ctrl-C', async () => {
    await start();
    const pid = await postmasterPid();
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
    // The fields of /proc/<pid>/stat after the name in parentheses: state, parent, process group, session.
    const [, , group, session] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    expect([group, session]).toEqual([String(pid), String(pid)]);
  });
});

/** Yields the names of the changed files of a folder, beginning with its current files. */
async function* changes(folder: string): AsyncGenerator<string> {
  const names: string[] = [];
  const watcher = watch(folder, (_, name) => {
    if (name !== null) names.push(name);
    watcher.emit('queued');
  });
  try {
    names.push(...(await readdir(folder)));
    for (;;) {
      const name = names.shift();
      if (name !== undefined) yield name;
      else await once(watcher, 'queued');
    }
  } finally {
    watcher.close();
  }
}
