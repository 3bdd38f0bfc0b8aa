import { spawn, type ChildProcess } from 'node:child_process';
import { chmod, mkdtemp, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildWeb } from '../../scripts/package/web.ts';
import { SUPERUSER } from '../../src/storage/embedded/cluster.ts';
import { startEmbedded, type EmbeddedServer } from '../../src/storage/embedded/embedded.ts';
import { calibrate } from './machine-calibration.ts';
import { makeTestProgram } from './program-bundle.ts';

/** What global-setup.ts leaves for global-teardown.ts; both run in the process that runs jest. */
export interface TestRun {
  readonly dataDir: string;
  /** Of the program that tests start. */
  readonly programDir: string;
  readonly server: EmbeddedServer;
  readonly watchdog: ChildProcess;
}

/** Where the handle is kept between the two. */
export const HANDLE = Symbol.for('klatch.test.run');

/**
 * Waits until its standard input ends, which the kernel sees to however this run of jest ends (Ctrl-C, kill -9), and
 * then stops the server and removes both folders. A server that was being started shows itself within two seconds.
 */
const WATCHDOG_SCRIPT = `
read -r _
for _ in 1 2 3 4 5 6 7 8 9 10; do test -s "$1/postgresql/postmaster.pid" && break; sleep 0.2; done
read -r pid < "$1/postgresql/postmaster.pid" && kill -QUIT "$pid"
while test -e "$1/postgresql/postmaster.pid" && kill -0 "$pid"; do sleep 0.1; done
rm -rf "$@"`;

/** Options for tests: nothing waits for the disk, many tests connect at once, and the WAL stays small in memory. */
const SETTINGS = {
  fsync: 'off',
  synchronous_commit: 'off',
  full_page_writes: 'off',
  max_connections: '200',
  max_wal_size: '256MB',
};

/** The databases of a run hold about 100 MB at a time, and the WAL 256 MB. */
const MEMORY_BYTES = 2 * 1024 ** 3;

/**
 * Where the cluster is made: in memory where there is room. To copy the template creates 470 files, which costs 265 ms
 * of CPU time on ext4 and 20 ms on tmpfs, for each of more than a thousand databases.
 */
async function clusterParent(): Promise<string> {
  const memory = await statfs('/dev/shm').catch(() => null);
  return memory !== null && memory.bavail * memory.bsize >= MEMORY_BYTES ? '/dev/shm' : tmpdir();
}

/**
 * Makes the program that tests start, and starts one private PostgreSQL server for the whole run. Tests find it in KLATCH_TEST_POSTGRES: JSON with `socketDir`,
 * `port` and `user` (a superuser); each of them makes its own database.
 */
// oxlint-disable-next-line import/no-default-export -- jest calls the default export.
export default async function globalSetup(): Promise<void> {
  const dataDir = await mkdtemp(join(await clusterParent(), 'klatch-test-'));
  // On the disk: memory may be mounted so that no program can be started there.
  const programDir = await mkdtemp(join(tmpdir(), 'klatch-test-program-'));
  // Passable, so that as root the server can run as another user, also where user namespaces are not allowed.
  for (const folder of [dataDir, programDir]) await chmod(folder, 0o711);
  // Before the server, so that there is no moment in which nobody would stop it. Detached: Ctrl-C must not reach it.
  const watchdog = spawn('/bin/sh', ['-c', WATCHDOG_SCRIPT, 'sh', dataDir, programDir], {
    cwd: '/',
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  const making = makeTestProgram(programDir);
  // Servers in the processes of jest read it from the source tree.
  const building = buildWeb();
  const server = await startEmbedded({ dataDir, binDir: null, log: () => {}, settings: SETTINGS });
  await Promise.all([making, building]);
  await calibrate(join(programDir, 'lib/klatch.cjs'), 'bundle');
  const { socketDir, port } = server;
  process.env['KLATCH_TEST_POSTGRES'] = JSON.stringify({ socketDir, port, user: SUPERUSER });
  const handle: TestRun = { dataDir, programDir, server, watchdog };
  Reflect.set(globalThis, HANDLE, handle);
}
