import { chmodSync, copyFileSync, mkdirSync, realpathSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { BUILD } from './paths.ts';
import { run, step } from './run.ts';

/** The dynamic loader, relative to the folder of the private C library. */
export const LOADER = 'ld-linux-x86-64.so.2';

/**
 * The libraries that Node, PostgreSQL's programs and the name service switch of old systems (`passwd: compat`) load.
 * Node needs glibc 2.28; Ubuntu 14.04 has 2.19.
 */
const LIBRARIES = [
  LOADER,
  'libc.so.6',
  'libm.so.6',
  'libpthread.so.0',
  'libdl.so.2',
  'librt.so.1',
  'libresolv.so.2',
  'libnss_compat.so.2',
  'libnss_files.so.2',
  'libnss_dns.so.2',
  'libstdc++.so.6',
  'libgcc_s.so.1',
];

const PLACES = ['/lib/x86_64-linux-gnu', '/usr/lib/x86_64-linux-gnu'];
const PACKAGES = ['libc6', 'libstdc++6', 'libgcc-s1'];

/** A private C library, copied from this machine's Debian 12. */
export interface Runtime {
  readonly folder: string;
  /** The Debian packages that contain it, such as `libc6 2.36-9+deb12u10`. */
  readonly packages: readonly string[];
}

/** Copies the private C library to build/rt; throws on a system other than Debian 12 on x86-64. */
export function collectRuntime(): Runtime {
  step('collecting the private C library');
  const { VERSION_ID, ID } = readOsRelease();
  if (ID !== 'debian' || VERSION_ID !== '12' || process.arch !== 'x64') {
    throw new Error(
      `packages are built on Debian 12 (x86-64), whose C library they carry; this is ${ID} ${VERSION_ID}`,
    );
  }
  const folder = join(BUILD, 'rt');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const name of LIBRARIES) {
    const target = join(folder, name);
    copyFileSync(find(name), target);
    chmodSync(target, name === LOADER ? 0o755 : 0o644);
  }
  const packages = run('dpkg-query', [
    '-W',
    '-f',
    '${Package} ${Version}\n',
    ...PACKAGES.map((each) => `${each}:amd64`),
  ]);
  return { folder, packages: packages.trim().split('\n') };
}

function readOsRelease(): Record<string, string> {
  const lines = run('cat', ['/etc/os-release']).matchAll(/^(\w+)="?([^"\n]*)"?$/gm);
  return Object.fromEntries([...lines].map(([, key, value]) => [key, value]));
}

function find(name: string): string {
  for (const place of PLACES) {
    try {
      return realpathSync(join(place, name));
    } catch {
      // Another folder may contain the library.
    }
  }
  throw new Error(`${basename(name)} is in none of ${PLACES.join(', ')}`);
}
