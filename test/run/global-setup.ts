import { spawn, type ChildProcess } from 'node:child_process';
import { chmod, mkdtemp, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildWeb } from '../../scripts/package/web.ts';
import { SUPERUSER } from '../../src/storage/embedded/cluster.ts';
import { startEmbedded, type EmbeddedServer } from '../../src/storage/embedded/embedded.ts';
import { calibrate } from './machine-calibration.ts';
import { makeTestProgram } from './program-bundle.ts';

/** The data that global-setup.ts leaves for global-teardown.ts; both run in the main process of jest. */
export interface TestRun {
  readonly dataDir: string;
  /** The folder of the program that tests start. */
  readonly programDir: string;
  readonly server: EmbeddedServer;
  readonly watchdog: ChildProcess;
}

/** The key of `globalThis` under which the set-up leaves its `TestRun` for global-teardown.ts. */
export const HANDLE = Symbol.for('klatch.test.run');

/**
 * The script waits until its standard input ends, which the kernel guarantees however this run of jest ends (Ctrl-C,
 * kill -9). It then stops the server and removes both folders. A server that was starting becomes visible within two
 * seconds.
 */
const WATCHDOG_SCRIPT = `
read -r _
for _ in 1 2 3 4 5 6 7 8 9 10; do test -s "$1/postgresql/postmaster.pid" && break; sleep 0.2; done
read -r pid < "$1/postgresql/postmaster.pid" && kill -QUIT "$pid"
while test -e "$1/postgresql/postmaster.pid" && kill -0 "$pid"; do sleep 0.1; done
rm -rf "$@"`;

/**
 * Settings of PostgreSQL for tests: no commit waits for the disk, many tests connect at the same time, and the WAL
 * stays small in memory.
 */
const SETTINGS = {
  fsync: 'off',
  synchronous_commit: 'off',
  full_page_writes: 'off',
  max_connections: '200',
  max_wal_size: '256MB',
};

/** The free memory that the folder needs. The databases of a run need about 100 MB at a time, and the WAL 256 MB. */
const MEMORY_BYTES = 2 * 1024 ** 3;

/**
 * The parent folder of the cluster: in memory if there is room. The creation of a database copies 470 files of the
 * template, for each of more than a thousand databases. That costs 265 ms of CPU time on ext4, and 20 ms on tmpfs.
 */
async function clusterParent(): Promise<string> {
  const memory = await statfs('/dev/shm').catch(() => null);
  return memory !== null && memory.bavail * memory.bsize >= MEMORY_BYTES ? '/dev/shm' : tmpdir();
}

/**
 * Makes the program that tests start, and starts one private PostgreSQL server for the whole run. Tests find it in
 * KLATCH_TEST_POSTGRES: JSON with `socketDir`, `port` and `user` (a superuser). Each test creates its own database.
 */
// oxlint-disable-next-line import/no-default-export -- jest calls the default export.
export default async function globalSetup(): Promise<void> {
  const dataDir = await mkdtemp(join(await clusterParent(), 'klatch-test-'));
  // The program is on the disk, because memory may be mounted with noexec.
  const programDir = await mkdtemp(join(tmpdir(), 'klatch-test-program-'));
  // If jest runs as root, this mode lets the server run as another user, also without user namespaces.
  for (const folder of [dataDir, programDir]) await chmod(folder, 0o711);
  // The watchdog starts first, so that at each moment something would stop the server. It is detached, because Ctrl-C
  // must not reach it.
  const watchdog = spawn('/bin/sh', ['-c', WATCHDOG_SCRIPT, 'sh', dataDir, programDir], {
    cwd: '/',
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  const making = makeTestProgram(programDir);
  // Servers that run in the processes of jest read the web client from the source tree, so it is built.
  const building = buildWeb();
  const server = await startEmbedded({ dataDir, binDir: null, log: () => {}, serverSettings: SETTINGS });
  await Promise.all([making, building]);
  await calibrate(join(programDir, 'lib/klatch.cjs'), 'bundle');
  const { socketDir, port } = server;
  process.env['KLATCH_TEST_POSTGRES'] = JSON.stringify({ socketDir, port, user: SUPERUSER });
  const handle: TestRun = { dataDir, programDir, server, watchdog };
  Reflect.set(globalThis, HANDLE, handle);
}
