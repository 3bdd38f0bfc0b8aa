/**
 * `make package-test`: installs and upgrades the packages for real, in minimal Debian systems with processes, mounts
 * and network of their own. QUICK=1: one release of Debian, the part that .ci/run runs. It passes arguments to jest.
 * Ends with the closing line of scripts/test.ts, and writes a table of actions and systems to dist/package-test.md.
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { closingLine, countsOf } from '../../closing-line.ts';
import { runJest } from '../../jest.ts';
import { makeChroots, SYSTEMS } from './chroots.ts';
import { BUILD, DIST } from '../paths.ts';
import { fetchPostgresql, POSTGRESQL_MAJORS } from '../postgresql-versions.ts';
import { formatTrials, type Trial } from './trial-table.ts';
import { requireTools } from '../tools.ts';

const TRIALS_FILE = join(BUILD, 'trials.jsonl');
const NAMESPACES = ['--mount', '--pid', '--fork', '--uts', '--ipc', '--cgroup', '--net'];
const isQuick = (process.env['QUICK'] ?? '') !== '';

try {
  await main(process.argv.slice(2));
} catch (error) {
  console.error(`package-test: ${error instanceof Error ? error.message : String(error)}`);
  // Where the tests cannot run they count as failed, so that the run cannot look like a pass.
  console.log(closingLine('package-test', { passed: 0, failed: 1, skipped: 0 }));
  process.exitCode = 1;
}

async function main(args: readonly string[]): Promise<void> {
  requireNamespaces();
  requireTools([
    'mmdebstrap',
    'busybox',
    'gpgv1',
    'lintian',
    'shellcheck',
    'unshare',
    'gcc',
    'openssl',
    'unzip',
    'curl',
    's3cmd',
    'chromium',
  ]);
  const packages = spawn(process.execPath, [join(import.meta.dirname, 'trial-packages.ts')], { stdio: 'inherit' });
  const built = once(packages, 'exit');
  // Makes the systems while another process makes the packages: this part needs the network more than a processor.
  makeChroots(SYSTEMS.map(({ name }) => name).filter((name) => !isQuick || name.startsWith('bookworm')));
  // All versions of PostgreSQL take a minute and half a gigabyte.
  if (!isQuick) for (const major of POSTGRESQL_MAJORS) fetchPostgresql(major);
  const [code] = (await built) as [number | null];
  if (code !== 0) throw new Error('the packages could not be made');
  rmSync(TRIALS_FILE, { force: true });
  const config = join(import.meta.dirname, '../../../test/package/jest.config.ts');
  // The tests run in a network namespace: servers have their usual ports, and only cached packages can be installed.
  const within = ['unshare', '--net', '/bin/sh', '-c', 'busybox ip link set lo up && exec "$@"', 'sh'];
  const { result, status } = runJest(['--config', config, ...args], { within, env: { KLATCH_TRIALS: TRIALS_FILE } });
  writeTable();
  console.log(closingLine('package-test', countsOf(result)));
  process.exitCode = status !== 0 || !result.success || result.numPassedTests === 0 ? 1 : 0;
}

function requireNamespaces(): void {
  if (process.geteuid?.() !== 0)
    throw new Error('needs root, to install packages in systems of its own. Run it with sudo');
  const { status, stderr } = spawnSync('unshare', [...NAMESPACES, 'true'], { encoding: 'utf8' });
  if (status !== 0) {
    throw new Error(
      `needs namespaces of its own, and this system does not give them to root (${stderr.trim()}). In a container: run it privileged`,
    );
  }
}

function writeTable(): void {
  if (!existsSync(TRIALS_FILE)) return;
  const lines = readFileSync(TRIALS_FILE, 'utf8').trim().split('\n');
  const table = formatTrials(lines.map((line) => JSON.parse(line) as Trial));
  mkdirSync(DIST, { recursive: true });
  writeFileSync(join(DIST, 'package-test.md'), table);
  console.error(`\n${table}`);
}
