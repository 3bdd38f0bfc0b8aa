/**
 * Makes the files that `make package-test` tests, in build/trials/: a release, later versions of it, and the
 * repositories that offer them. Does nothing if they were already made from these sources. The release is in dist/,
 * except with QUICK=1, which also omits versions that the quick tests do not need.
 */
import { createHash } from 'node:crypto';
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { makeBinary } from '../binary.ts';
import { bundle } from '../bundle.ts';
import { makeCompanionDeb } from '../companion.ts';
import { makeDeb } from '../deb.ts';
import { fillInstallScript } from '../install-sh.ts';
import { makeParts } from '../parts.ts';
import { BUILD, buildVersion, DIST, ROOT, sourceDateEpoch } from '../paths.ts';
import { makeRelease } from '../release.ts';
import { KEYRING, publish } from '../repo.ts';
import { step } from '../run.ts';
import { collectRuntime } from '../runtime.ts';
import { SigningKey } from '../signing-key.ts';
import { requireTools } from '../tools.ts';
import { makeCompanionZip, makeZip } from '../zip.ts';

const TRIALS = join(BUILD, 'trials');
const PACKAGES = join(TRIALS, 'packages');
const STAMP = join(TRIALS, 'stamp');
/** The compression level of the packages of a quick run: better compression takes time, and nobody receives them. */
const QUICK_LEVEL = 1;
/** The sources of the packages: a change of any of them makes the files out of date. */
const SOURCES = [
  'src',
  'client',
  'web',
  'packages',
  'scripts/package',
  'debian',
  'etc',
  'systemd',
  'docs/man',
  'install.sh',
  'package-lock.json',
];

/** A later version of the packages. `migration` is a database migration after those of this commit; null: none. */
interface Later {
  /** The folder of the repository that offers this version and all earlier ones. */
  readonly name: string;
  readonly migration: string | null;
  readonly isQuick: boolean;
}

const LATER: readonly Later[] = [
  { name: 'same-schema', migration: null, isQuick: true },
  { name: 'new-schema', migration: 'create table trial_of_an_upgrade (id bigint primary key);', isQuick: true },
  {
    name: 'failing',
    migration: 'create table trial_half_way (id bigint); insert into no_such_table values (1);',
    isQuick: false,
  },
];

const isQuick = (process.env['QUICK'] ?? '') !== '';
const stamp = `${hashSources()}${isQuick ? ' quick' : ''}`;
// Nothing to make if the files are up to date. The quick tests can also use the files for all tests.
if (existsSync(STAMP) && stamp.startsWith(readFileSync(STAMP, 'utf8')) && existsSync(DIST)) process.exit(0);
requireTools(['dpkg-deb', 'dpkg-scanpackages', 'dpkg-query', 'xz', 'zip', 'patchelf', 'strip', 'gpg']);
rmSync(TRIALS, { recursive: true, force: true });
for (const folder of [PACKAGES, DIST]) mkdirSync(folder, { recursive: true });
await makeAll();
writeFileSync(STAMP, stamp);

async function makeAll(): Promise<void> {
  if (isQuick) await makeQuickly();
  else await copyRelease();
  const key = new SigningKey({
    wanted: undefined,
    passphraseFile: undefined,
    gnupgHome: undefined,
    throwAwayFile: join(TRIALS, 'key.asc'),
  });
  try {
    key.open();
    const debs = readdirSync(PACKAGES)
      .filter((name) => name.endsWith('.deb'))
      .map((name) => join(PACKAGES, name));
    publishOver(null, { name: 'first', packages: debs, key });
    let before = 'first';
    const migrations: string[] = [];
    for (const [index, later] of LATER.entries()) {
      if (isQuick && !later.isQuick) continue;
      if (later.migration !== null) migrations.push(later.migration);
      publishOver(before, { name: later.name, packages: [await makeLater(index + 1, migrations)], key });
      before = later.name;
    }
  } finally {
    key.close();
  }
  const script = fillInstallScript(readFileSync(join(ROOT, 'install.sh'), 'utf8'), {
    version: buildVersion(),
    repoUrl: undefined,
    keyringFile: join(TRIALS, 'first', KEYRING),
    madeS: sourceDateEpoch(),
  });
  writeFileSync(join(TRIALS, 'install.sh'), script, { mode: 0o755 });
}

async function copyRelease(): Promise<void> {
  const files = (await makeRelease()).filter((file) => /\.(deb|zip)$/.test(file));
  for (const file of files) copyFileSync(file, join(PACKAGES, basename(file)));
}

/** Makes the tested parts of a release in a third of the time. Restores dist/ afterwards. */
async function makeQuickly(): Promise<void> {
  process.env['DPKG_DEB_COMPRESSOR_LEVEL'] = String(QUICK_LEVEL);
  const parts = await makeParts();
  const zips = [makeZip(parts, QUICK_LEVEL), makeCompanionZip(QUICK_LEVEL)];
  for (const made of [makeDeb(parts), makeCompanionDeb(), ...zips]) keep(made);
}

/** Moves a package out of dist/, since nobody may receive it. */
function keep(file: string): string {
  const kept = join(PACKAGES, basename(file));
  renameSync(file, kept);
  return kept;
}

/** Publishes a repository with these packages and those of the repository `before`. */
function publishOver(
  before: string | null,
  { name, packages, key }: { name: string; packages: readonly string[]; key: SigningKey },
): void {
  const folder = join(TRIALS, name);
  if (before !== null) cpSync(join(TRIALS, before), folder, { recursive: true, preserveTimestamps: true });
  publish({ folder, packages, dateS: sourceDateEpoch(), key });
}

/** The package of the version that is `steps` patch versions after this one, with these migrations after its own. */
async function makeLater(steps: number, migrations: readonly string[]): Promise<string> {
  const [major, minor, patch] = buildVersion().replace(/~.*/, '').split('.').map(Number);
  const before = { ...process.env };
  process.env['VERSION'] = `${major}.${minor}.${patch! + steps}`;
  process.env['DPKG_DEB_COMPRESSOR_LEVEL'] = String(QUICK_LEVEL);
  try {
    step(`making version ${buildVersion()} for trials of upgrades`);
    const made = await bundle();
    const folder = join(made.folder, 'storage/migrations');
    for (const migration of migrations) {
      const number = String(readdirSync(folder).length + 1).padStart(3, '0');
      writeFileSync(join(folder, `${number}-trial.sql`), migration);
    }
    return keep(makeDeb({ runtime: collectRuntime(), bundle: made, binary: await makeBinary(made) }));
  } finally {
    process.env = before;
  }
}

function hashSources(): string {
  const hash = createHash('sha256').update(buildVersion());
  for (const source of SOURCES.map((name) => join(ROOT, name)).filter((path) => existsSync(path))) {
    const names = statSync(source).isDirectory() ? readdirSync(source, { recursive: true, encoding: 'utf8' }) : [''];
    for (const file of names.sort().map((name) => join(source, name))) {
      if (statSync(file).isFile()) hash.update(file.slice(ROOT.length)).update(readFileSync(file));
    }
  }
  return hash.digest('hex');
}
