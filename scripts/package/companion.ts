import { chmodSync, lstatSync, readdirSync, rmSync, openSync, readFileSync, readSync, closeSync } from 'node:fs';
import { join } from 'node:path';
import { packDeb } from './deb.ts';
import { BUILD, POSTGRESQL, postgresqlVersion, ROOT } from './paths.ts';
import { run, step } from './run.ts';
import { LOADER } from './runtime.ts';
import { Stage } from './stage.ts';

/** The programs of PostgreSQL that a private server needs. */
export const PROGRAMS = ['postgres', 'initdb', 'pg_ctl'];
/**
 * Matches the files that the package leaves out: files that only compilers need, and procedural languages whose
 * libraries the package does not contain.
 */
const UNNEEDED = /\.a$|\/(pkgconfig|pgxs)(\/|$)|^\/lib\/lib(ecpg|pgtypes|[^/]*\.so$)|(plperl|plpython3|pltcl)[^/]*$/;

/**
 * Makes the package of the private PostgreSQL programs, dist/klatch-postgresql_<version>_amd64.deb. Version and date
 * come from its own changelog. It stays the same in all releases until PostgreSQL or the way of packing changes. So an
 * upgrade of the server usually brings no new PostgreSQL, and no restart of the database.
 */
export function makeCompanionDeb(): string {
  const changelog = readFileSync(join(ROOT, 'debian/klatch-postgresql.changelog'), 'utf8');
  const { version, date } = readChangelog(changelog);
  step(`laying out klatch-postgresql ${version}`);
  const stage = new Stage(join(BUILD, 'deb/klatch-postgresql'));
  stageCompanion(stage, 'usr/lib/klatch/postgresql', `/usr/lib/klatch/rt/${LOADER}`);
  const documents = 'usr/share/doc/klatch-postgresql';
  stage.writePacked(`${documents}/changelog.Debian.gz`, changelog);
  stage.copy(join(ROOT, 'debian/klatch-postgresql.copyright'), `${documents}/copyright`);
  return packDeb(stage, { name: 'klatch-postgresql', version, epoch: date });
}

/**
 * The newest entry of the changelog: its version, and its date in seconds. Throws when npm brings another PostgreSQL
 * than the entry names.
 */
function readChangelog(changelog: string): { version: string; date: number } {
  const [, version] = /^klatch-postgresql \((\S+)\)/.exec(changelog) ?? [];
  const [, date] = /^ -- .*>  (.*)$/m.exec(changelog) ?? [];
  if (version?.replace(/-\d+$/, '') !== postgresqlVersion()) {
    throw new Error(
      `debian/klatch-postgresql.changelog is at ${version}, npm brings ${postgresqlVersion()}: add an entry`,
    );
  }
  return { version, date: Date.parse(date ?? '') / 1000 };
}

/**
 * Copies PostgreSQL's programs to `path`: bin, lib, share. They load their libraries from `lib` beside them and the
 * private C library from `../rt`. `interpreter` is their loader; null: a launcher starts the loader by its path.
 */
export function stageCompanion(stage: Stage, path: string, interpreter: string | null): void {
  for (const folder of ['bin', 'lib', 'share']) stage.copy(join(POSTGRESQL, 'native', folder), `${path}/${folder}`);
  const root = stage.at(path);
  for (const entry of readdirSync(root, { recursive: true }) as string[]) {
    if (UNNEEDED.test(`/${entry}`)) rmSync(join(root, entry), { recursive: true, force: true });
  }
  for (const entry of readdirSync(root, { recursive: true }) as string[]) {
    const file = join(root, entry);
    if (!lstatSync(file).isFile() || !isElf(file)) continue;
    const isProgram = PROGRAMS.some((name) => entry === `bin/${name}`);
    // RPATH and not RUNPATH, which does not apply to libraries of libraries.
    const paths = isProgram ? '$ORIGIN/../lib:$ORIGIN/../../rt' : libraryPath(entry);
    const start = isProgram && interpreter !== null ? ['--set-interpreter', interpreter] : [];
    if (!isProgram) chmodSync(file, 0o644);
    run('strip', ['--strip-unneeded', file]);
    run('patchelf', [...start, '--force-rpath', '--set-rpath', paths, file]);
  }
}

/** The path from a library to `lib` and to the private C library. */
function libraryPath(entry: string): string {
  const up = '../'.repeat(entry.split('/').length - 1);
  return `$ORIGIN/${up}lib:$ORIGIN/${up}../rt`;
}

function isElf(file: string): boolean {
  const descriptor = openSync(file, 'r');
  try {
    const magic = Buffer.alloc(4);
    readSync(descriptor, magic, 0, 4, 0);
    return magic.toString('latin1') === '\x7fELF';
  } finally {
    closeSync(descriptor);
  }
}
