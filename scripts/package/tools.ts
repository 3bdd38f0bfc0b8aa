import { spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { delimiter, resolve } from 'node:path';
import { run } from './run.ts';

/** Programs that the build needs beyond make, Node and npm, each with the Debian package that contains it. */
const PACKAGES = {
  patchelf: 'patchelf',
  strip: 'binutils',
  readelf: 'binutils',
  'dpkg-deb': 'dpkg',
  'dpkg-query': 'dpkg',
  'dpkg-scanpackages': 'dpkg-dev',
  xz: 'xz-utils',
  zip: 'zip',
  unzip: 'unzip',
  gpg: 'gnupg',
  gpgv1: 'gpgv1',
  lintian: 'lintian',
  shellcheck: 'shellcheck',
  mandoc: 'mandoc',
  mmdebstrap: 'mmdebstrap',
  busybox: 'busybox-static',
  curl: 'curl',
  s3cmd: 's3cmd',
  // build-essential includes the C library's headers and its static form.
  gcc: 'build-essential',
  openssl: 'openssl',
  unshare: 'util-linux',
  // For the tests with a wrong clock (faults/clock-faults.ts), which .ci/run must not skip.
  faketime: 'faketime',
  // For a cluster of PostgreSQL (faults/cluster), and the test of a pooler.
  patroni: 'patroni',
  etcd: 'etcd-server',
  haproxy: 'haproxy',
  ip: 'iproute2',
  '/usr/lib/postgresql/15/bin/postgres': 'postgresql-15',
  pgbouncer: 'pgbouncer',
  // Opens the browser client in test/foreign/web.
  chromium: 'chromium',
  // The proxy in front of the server in test/foreign/web.
  '/usr/sbin/nginx': 'nginx-light',
  // The IRC server for The Lounge in bench/web.
  '/usr/sbin/ngircd': 'ngircd',
  // These post to the server in test/foreign/callers. A folder in /usr/share/doc identifies a library.
  'prometheus-alertmanager': 'prometheus-alertmanager',
  apprise: 'apprise',
  borgmatic: 'borgmatic',
  '/usr/lib/netdata/plugins.d/alarm-notify.sh': 'netdata-plugins-bash',
  '/usr/share/doc/ruby-slack-notifier': 'ruby-slack-notifier',
  '/usr/share/doc/ruby-discordrb-webhooks': 'ruby-discordrb-webhooks',
  '/usr/share/doc/python3-python-telegram-bot': 'python3-python-telegram-bot',
  // These receive messages in test/foreign/receivers, and verify deliveries.
  webhook: 'webhook',
  '/usr/bin/php': 'php-cli',
  '/usr/bin/python3': 'python3',
  monit: 'monit',
  '/usr/share/smartmontools/smartd_warning.sh': 'smartmontools',
  nagios4: 'nagios4-core',
  icinga2: 'icinga2-bin',
  '/usr/share/doc/ruby-slack-messenger': 'ruby-slack-messenger',
  '/usr/share/doc/php-curl': 'php-curl',
  '/usr/share/doc/php-monolog': 'php-monolog',
  '/usr/share/doc/php-symfony-discord-notifier': 'php-symfony-discord-notifier',
} as const;

/** A program by name, or by path where it is outside the folders of programs, as `requireTools` accepts it. */
export type Tool = keyof typeof PACKAGES;

/** A policy for invoke-rc.d: the installation of a package must start no daemon. */
const START_NOTHING = '#!/bin/sh\nexit 101\n';
const POLICY = '/usr/sbin/policy-rc.d';

/** Runs `work` while no installed package may start a daemon. It then restores an existing policy. */
function withoutDaemons(work: () => void): void {
  const former = existsSync(POLICY) ? readFileSync(POLICY) : null;
  rmSync(POLICY, { force: true });
  writeFileSync(POLICY, START_NOTHING, { mode: 0o755 });
  try {
    work();
  } finally {
    rmSync(POLICY, { force: true });
    if (former !== null) writeFileSync(POLICY, former, { mode: 0o755 });
  }
}

/**
 * Makes sure that programs are installed. As root on a system with apt it installs the Debian packages of the missing
 * ones, and names them. Otherwise it throws with the command to run.
 */
export function requireTools(tools: readonly Tool[], { startsDaemons = true } = {}): void {
  const missing = tools.filter((tool) => !isThere(tool));
  if (missing.length === 0) return;
  const packages = [...new Set(missing.map((tool) => PACKAGES[tool]))].sort();
  const todo = `apt-get install ${packages.join(' ')}`;
  if (process.geteuid?.() !== 0 || !isThere('apt-get')) {
    throw new Error(`${missing.join(', ')}: not on this machine. Run: sudo ${todo}`);
  }
  const guard = startsDaemons ? (work: () => void): void => work() : withoutDaemons;
  guard(() => install(packages, missing));
}

function install(packages: readonly string[], missing: readonly Tool[]): void {
  console.error(`  installing Debian's ${packages.join(', ')} (for ${missing.join(', ')}) ...`);
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  const args = ['install', '-y', '--no-install-recommends', ...packages];
  if (spawnSync('apt-get', args, { env, stdio: 'ignore' }).status === 0) return;
  // A new machine has no package lists yet, and an old one may have outdated lists.
  run('apt-get', ['update'], { env });
  run('apt-get', args, { env });
}

function isThere(tool: string): boolean {
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin', '/sbin'];
  return folders.some((folder) => {
    try {
      accessSync(resolve(folder, tool), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

function toolOf(name: string): Tool {
  if (name in PACKAGES) return name as Tool;
  throw new Error(`${name}: no tool of this project; there are ${Object.keys(PACKAGES).join(', ')}`);
}

/**
 * `node scripts/package/tools.ts faketime`: installs the programs that .ci/run needs beyond the packages' tools. It
 * starts no daemon.
 */
if (import.meta.main) requireTools(process.argv.slice(2).map(toolOf), { startsDaemons: false });
