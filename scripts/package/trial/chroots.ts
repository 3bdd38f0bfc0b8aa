/** Minimal Debian systems for the tests of the packages, made from Debian's archive. */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { BUILD } from '../paths.ts';
import { run, step } from '../run.ts';
import { requireTools } from '../tools.ts';

/** One system: the name of its folder, its release, and its packages beyond the minimum. */
export interface System {
  readonly name: string;
  readonly suite: string;
  readonly include: readonly string[];
}

const SOURCES_LIST = '/etc/apt/sources.list';
const SOURCES = `${SOURCES_LIST}.d`;
/** Matches the Debian mirror of this machine's own apt, in either format of its lists. */
const SOURCE = /^(?:URIs:|deb(?: \[[^\]]*\])?) +(\S+\/debian)\/?(?: |$)/m;
const SYSTEMD = ['systemd', 'systemd-sysv', 'dbus'];
/** Packages that tests install in these systems later, without a network. They stay in apt's cache. */
const CACHED_PACKAGES = ['postgresql', 'logrotate'];
const MAX_AGE_MS = 24 * 3600 * 1000;

/** All systems. Those with `systemd` in their name run systemd as process 1. */
export const SYSTEMS: readonly System[] = [
  { name: 'bookworm', suite: 'bookworm', include: [] },
  { name: 'bookworm-systemd', suite: 'bookworm', include: SYSTEMD },
  { name: 'bullseye', suite: 'bullseye', include: [] },
  { name: 'trixie', suite: 'trixie', include: [] },
  { name: 'trixie-systemd', suite: 'trixie', include: SYSTEMD },
];

/** The root folder of a system of these tests. */
export function chrootDir(name: string): string {
  return join(BUILD, 'chroots', name);
}

/** Makes the systems with these names that are missing, older than a day, or made by other arguments of mmdebstrap. */
export function makeChroots(names: readonly string[]): void {
  requireTools(['mmdebstrap']);
  mkdirSync(join(BUILD, 'chroots'), { recursive: true });
  const mirror = findMirror();
  for (const system of SYSTEMS.filter(({ name }) => names.includes(name))) {
    const stamp = `${chrootDir(system.name)}.stamp`;
    const recipe = createHash('sha256').update(mmdebstrap(system, mirror).join('\n')).digest('hex');
    if (isFresh(stamp, recipe)) continue;
    step(`making a minimal Debian: ${system.name}`);
    const made = `${chrootDir(system.name)}.new`;
    for (const folder of [stamp, made]) rmSync(folder, { recursive: true, force: true });
    run('mmdebstrap', mmdebstrap(system, mirror));
    rmSync(chrootDir(system.name), { recursive: true, force: true });
    renameSync(made, chrootDir(system.name));
    writeFileSync(stamp, recipe);
  }
}

function isFresh(stamp: string, recipe: string): boolean {
  if (!existsSync(stamp) || readFileSync(stamp, 'utf8') !== recipe) return false;
  return Date.now() - statSync(stamp).mtimeMs < MAX_AGE_MS;
}

/** The archive of this machine's own packages, or $DEBIAN_MIRROR; null: mmdebstrap's own default. */
function findMirror(): string | null {
  const given = process.env['DEBIAN_MIRROR'];
  if (given !== undefined && given !== '') return given;
  const listed = existsSync(SOURCES) ? readdirSync(SOURCES).map((name) => join(SOURCES, name)) : [];
  for (const file of [SOURCES_LIST, ...listed].filter((each) => existsSync(each))) {
    const [, mirror] = SOURCE.exec(readFileSync(file, 'utf8')) ?? [];
    if (mirror !== undefined) return mirror;
  }
  return null;
}

function mmdebstrap({ name, suite, include }: System, mirror: string | null): string[] {
  const hosts = 'printf "127.0.0.1 localhost\\n::1 localhost\\n" >"$1/etc/hosts"';
  return [
    '--variant=minbase',
    '--mode=root',
    // Keeps apt's lists and its cached packages.
    '--skip=cleanup/apt',
    ...(include.length === 0 ? [] : [`--include=${include.join(',')}`]),
    `--customize-hook=${hosts}`,
    // Without a network, apt must not repeat its requests.
    '--customize-hook=echo \'Acquire::Retries "0";\' >"$1/etc/apt/apt.conf.d/99no-retries"',
    // The packages of the system itself are not needed again.
    '--customize-hook=chroot "$1" apt-get clean',
    `--customize-hook=chroot "$1" apt-get -y -q --no-install-recommends --download-only install ${CACHED_PACKAGES.join(' ')}`,
    suite,
    `${chrootDir(name)}.new`,
    ...(mirror === null ? [] : [`deb ${mirror} ${suite} main`]),
  ];
}
