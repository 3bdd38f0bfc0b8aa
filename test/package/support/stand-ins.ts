import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { mustRun } from './run.ts';

/** A small package that replaces a real one in tests. */
export interface StandIn {
  readonly name: string;
  readonly version: string;
  /** The installed size that the package announces, in KiB. */
  readonly installedKib?: number;
  /** The contents of the package's files by path; all get the mode 0755. */
  readonly files?: Readonly<Record<string, string>>;
  /** The scripts of the package by name: preinst, postinst, prerm, postrm. */
  readonly scripts?: Readonly<Record<string, string>>;
  readonly fields?: Readonly<Record<string, string>>;
}

/** A stand-in for `klatch config check`, which install.sh runs: it fails if the configuration has a placeholder. */
const PROGRAM = `#!/bin/sh
[ "$1 $2" = 'config check' ] || exit 64
! grep -q '<' /etc/klatch/server.conf
`;

const POSTINST = `#!/bin/sh
set -e
[ -e /etc/klatch/server.conf ] || { mkdir -p /etc/klatch; echo 'secret: <SERVER_SECRET>' >/etc/klatch/server.conf; }
`;

/** A stand-in for the server's package. It writes a configuration with a placeholder, as the real package does. */
export function klatch(version: string, more: Partial<StandIn> = {}): StandIn {
  return { name: 'klatch', version, files: { '/usr/bin/klatch': PROGRAM }, scripts: { postinst: POSTINST }, ...more };
}

/** A stand-in for the package of the private PostgreSQL. */
export function klatchPostgresql(version = '18.4'): StandIn {
  const files = { '/usr/lib/klatch/postgresql/bin/postgres': '#!/bin/sh\n' };
  return { name: 'klatch-postgresql', version, files, fields: { Depends: 'klatch' } };
}

/** The package `postgresql` of a distribution. */
export function postgresql(version: string): StandIn {
  return { name: 'postgresql', version };
}

/** Builds a package into a folder and resolves to its file. */
export async function build(folder: string, standIn: StandIn): Promise<string> {
  const { name, version, installedKib = 10, files = {}, scripts = {}, fields = {} } = standIn;
  mkdirSync(folder, { recursive: true });
  const stage = mkdtempSync(join(folder, 'stage-'));
  const control = {
    Package: name,
    Version: version,
    Architecture: 'amd64',
    Maintainer: 'Klatch <klatch@example.org>',
    'Installed-Size': String(installedKib),
    Description: 'stand-in for a test',
    ...fields,
  };
  const put = (path: string, text: string, mode: number): void => {
    mkdirSync(dirname(join(stage, path)), { recursive: true });
    writeFileSync(join(stage, path), text, { mode });
  };
  put(
    'DEBIAN/control',
    Object.entries(control)
      .map(([field, value]) => `${field}: ${value}\n`)
      .join(''),
    0o644,
  );
  for (const [script, text] of Object.entries(scripts)) put(`DEBIAN/${script}`, text, 0o755);
  for (const [path, text] of Object.entries({ [`/usr/share/doc/${name}/about`]: 'stand-in\n', ...files }))
    put(path, text, 0o755);
  const file = join(folder, `${name}_${fields['Version'] ?? version}_${control.Architecture}.deb`);
  const env = { ...process.env, SOURCE_DATE_EPOCH: '1700000000' } as Record<string, string>;
  await mustRun('chmod', ['-R', 'u=rwX,go=rX', stage]);
  await mustRun('dpkg-deb', ['--root-owner-group', '-Zgzip', '--build', stage, file], { env });
  rmSync(stage, { recursive: true });
  return file;
}

/** Builds packages into a folder, and makes it an unsigned archive of a distribution: `deb [trusted=yes] URL ./`. */
export async function makeDistribution(folder: string, packages: readonly StandIn[]): Promise<void> {
  mkdirSync(folder, { recursive: true });
  for (const each of packages) await build(folder, each);
  writeFileSync(join(folder, 'Packages'), await mustRun('dpkg-scanpackages', ['--multiversion', '.'], { cwd: folder }));
}
