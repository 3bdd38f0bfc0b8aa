import { execFile } from 'node:child_process';
import { availableParallelism, release, totalmem, type } from 'node:os';
import { resolve } from 'node:path';
import { promisify } from 'node:util';
import { findPrograms } from '../src/storage/embedded/programs.ts';

const run = promisify(execFile);
const ROOT = resolve(import.meta.dirname, '..');
/** The suite itself writes these files, so a change in them is no change of the tested sources. */
const REPORT_FILES = ['docs/fault-report.md', 'faults/report.json'];

/** The machine on which a report was made, and the commit that was tested. */
export interface Machine {
  readonly cores: number;
  readonly memoryGiB: number;
  readonly kernel: string;
  readonly node: string;
  readonly postgresql: string;
  /** The commit, with a note if files differ from it. */
  readonly commit: string;
}

export async function describeMachine(): Promise<Machine> {
  const { postgresqlVersion: version } = await findPrograms({ binDir: null, clusterMajor: null, clusterDir: ROOT });
  return {
    cores: availableParallelism(),
    memoryGiB: Math.round(totalmem() / 1024 ** 3),
    kernel: `${type()} ${release()}`,
    node: process.version.slice(1),
    postgresql: version,
    commit: await commit(),
  };
}

async function commit(): Promise<string> {
  try {
    const { stdout: hash } = await run('git', ['rev-parse', '--short=12', 'HEAD'], { cwd: ROOT });
    const { stdout: changes } = await run(
      'git',
      ['status', '--porcelain', '--', '.', ...REPORT_FILES.map((file) => `:!${file}`)],
      { cwd: ROOT },
    );
    return hash.trim() + (changes === '' ? '' : ' with changes that are not committed');
  } catch {
    // The sources are here without their Git history. The suite also runs from such a copy.
    return 'unknown';
  }
}
