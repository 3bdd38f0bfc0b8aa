import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DataDirLock, DataDirLockedError } from '../../src/storage/data-dir-lock.ts';

const MODULE = new URL('../../src/storage/data-dir-lock.ts', import.meta.url).href;

let root: string;
let holder: ChildProcess | null = null;

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'klatch-lock-'));
});

afterEach(async () => {
  if (holder !== null && holder.exitCode === null && holder.signalCode === null) await kill(holder);
  holder = null;
  await rm(root, { recursive: true, force: true });
});

/** A process of its own that holds the lock, once it has said so. */
async function startHolder(dataDir: string): Promise<ChildProcess> {
  const script = `const { DataDirLock } = await import(${JSON.stringify(MODULE)});
    await DataDirLock.acquire(process.argv[1]);
    process.stdin.resume();
    process.stdout.write('locked');`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script, dataDir], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  holder = child;
  await once(child.stdout, 'data');
  return child;
}

async function kill(child: ChildProcess): Promise<void> {
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
}

describe('DataDirLock', () => {
  test('a second process is refused in a sentence with the directory and the pid of the first', async () => {
    const child = await startHolder(root);
    const refused = await DataDirLock.acquire(root).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(DataDirLockedError);
    expect((refused as Error).message).toContain(root);
    expect((refused as Error).message).toContain(`(pid ${child.pid})`);
  });

  test('kill -9 of the holder frees the lock', async () => {
    const child = await startHolder(root);
    await kill(child);
    const lock = await DataDirLock.acquire(root);
    await lock.release();
  });

  test('a released lock can be taken again, and releasing twice is harmless', async () => {
    const first = await DataDirLock.acquire(root);
    await expect(DataDirLock.acquire(root)).rejects.toThrow(`(pid ${process.pid})`);
    await Promise.all([first.release(), first.release()]);
    const second = await DataDirLock.acquire(root);
    await first.release();
    await expect(DataDirLock.acquire(root)).rejects.toThrow(DataDirLockedError);
    await second.release();
  });

  test('of many that try at once exactly one gets it', async () => {
    const results = await Promise.allSettled(Array.from({ length: 20 }, () => DataDirLock.acquire(root)));
    const locks = results.filter((result) => result.status === 'fulfilled');
    expect(locks).toHaveLength(1);
    for (const { value } of locks) await value.release();
  });

  test('another path to the same directory is the same lock, another directory is not', async () => {
    const link = join(root, 'link');
    await symlink(join(root, 'data'), link);
    const lock = await DataDirLock.acquire(join(root, 'data'));
    await expect(DataDirLock.acquire(link)).rejects.toThrow(DataDirLockedError);
    const other = await DataDirLock.acquire(join(root, 'other'));
    await lock.release();
    await other.release();
  });

  test('a path longer than a socket name can be is locked all the same', async () => {
    const deep = join(root, 'a'.repeat(200), 'b'.repeat(200));
    const lock = await DataDirLock.acquire(deep);
    await expect(DataDirLock.acquire(deep)).rejects.toThrow(DataDirLockedError);
    await lock.release();
  });

  test('the lock alone does not keep a process alive', async () => {
    const script = `const { DataDirLock } = await import(${JSON.stringify(MODULE)}); await DataDirLock.acquire(process.argv[1]);`;
    holder = spawn(process.execPath, ['--input-type=module', '-e', script, root], { stdio: 'ignore' });
    const [code] = await once(holder, 'exit');
    expect(code).toBe(0);
  });
});
