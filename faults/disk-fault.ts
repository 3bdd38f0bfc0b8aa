import { execFile } from 'node:child_process';
import { chmod, mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { MAX_UNSETTLED_ATTEMPTS } from '../src/delivery/lane.ts';
import { Connection, type Sql } from '../src/storage/db/connection.ts';
import { DatabaseUnavailableError, CommitUnknownError, sqlState } from '../src/storage/db/database-error.ts';
import { SUPERUSER } from '../src/storage/embedded/cluster.ts';
import { findPostmaster } from '../src/storage/embedded/postmaster.ts';
import type { CleanUp } from './clean-up.ts';
import type { Fault, Lack, Scene } from './fault.ts';
import { endedByItself } from './server-faults.ts';
import { Stage } from './stage.ts';
import { until } from './until.ts';

const run = promisify(execFile);

const DISK_MIB = 512;
const BLOCK = Buffer.alloc(1024 * 1024);
/** The server has to refuse this many posts before the fault frees the disk. */
const REFUSED = 20;
const LOG_BYTES = 8 * 1024 * 1024;
const LOG_GROWS_MS = 5_000;

async function mountSmallDisk(cleanUp: CleanUp): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'klatch-disk-'));
  await cleanUp.add('folder of the disk', () => rm(folder, { recursive: true, force: true }));
  await run('mount', ['-t', 'tmpfs', '-o', `size=${DISK_MIB}m,mode=0711`, 'tmpfs', folder]);
  // If a process still uses the disk, the lazy unmount detaches it from the folder at once.
  await cleanUp.add('disk', async () => {
    await run('umount', [folder]).catch(() => run('umount', ['--lazy', folder]));
  });
  await chmod(folder, 0o711);
  return folder;
}

/** Appends to a file until the disk is full. */
async function fill(path: string): Promise<void> {
  const file = await open(path, 'a');
  try {
    for (;;) await file.write(BLOCK);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
  } finally {
    await file.close();
  }
}

/**
 * Writes so much into PostgreSQL's write-ahead log that it soon needs another file. Returns false when PostgreSQL has
 * ended.
 */
async function growsLog(dataDir: string): Promise<boolean> {
  const postmaster = await findPostmaster(join(dataDir, 'postgresql'));
  if (postmaster?.status !== 'ready') return false;
  const { socketDir: host, port } = postmaster;
  const place = { host, port, user: SUPERUSER, database: 'postgres', password: '' };
  const connection = new Connection({ ...place, connectTimeoutMs: 500, lockTimeoutMs: 500 }, 'faults');
  try {
    const grow = (sql: Sql): Promise<unknown> =>
      sql`select pg_logical_emit_message(true, 'fill', repeat('x', ${LOG_BYTES}::int))`;
    await connection.run(grow, LOG_GROWS_MS);
    return true;
  } catch (error) {
    // PostgreSQL answered with an error of its own, so it still runs.
    if (sqlState(error) !== null) return true;
    if (error instanceof CommitUnknownError || error instanceof DatabaseUnavailableError) return false;
    throw error;
  } finally {
    connection.close();
  }
}

async function openFullDisk(cleanUp: CleanUp): Promise<Scene> {
  const folder = await mountSmallDisk(cleanUp);
  const filler = join(folder, 'filler');
  const stage = await Stage.start(cleanUp, { process: { parentDir: folder } });
  return {
    stage,
    strike: async (run) => {
      const refused = stage.load.refused + REFUSED;
      // PostgreSQL survives if only its tables cannot grow. In every second run its write-ahead log cannot grow either,
      // which ends it.
      let hasEnded = run % 2 === 0;
      await until('posts are refused', async () => {
        // PostgreSQL frees space between the polls, so each poll fills the disk again.
        await fill(filler);
        if (!hasEnded) hasEnded = !(await growsLog(stage.server.dataDir));
        return hasEnded && stage.load.refused >= refused;
      });
      await rm(filler);
      stage.faultEnds();
    },
    violations: () => endedByItself(stage),
  };
}

/** Checks whether a tmpfs can be mounted here. It tries, since root may lack the right in a container. */
export async function lacksMount(): Promise<Lack> {
  if (process.getuid?.() !== 0) return 'mounting a small disk needs root: run it as root';
  const folder = await mkdtemp(join(tmpdir(), 'klatch-disk-'));
  try {
    await run('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', folder]);
    await run('umount', [folder]);
    return null;
  } catch {
    return 'a small disk cannot be mounted here, though this is root: allow mounting (CAP_SYS_ADMIN)';
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

export const diskFault: Fault = {
  name: 'disk-full',
  title: 'disk full on the database',
  runs: { full: 100, quick: 2, test: 1 },
  runMs: 90_000,
  repeatsPerLane: MAX_UNSETTLED_ATTEMPTS,
  lacks: lacksMount,
  open: openFullDisk,
};
