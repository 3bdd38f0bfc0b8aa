import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createHash } from 'node:crypto';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmod, chown, lstat, mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DataDirError, DataDirLock, DataDirLockedError, findLockHolder } from '../../src/data-dir/lock.ts';
import { describeUser } from '../../src/data-dir/passwd.ts';

const MODULE = new URL('../../src/data-dir/lock.ts', import.meta.url).href;

const asRoot = process.geteuid?.() === 0 ? test : test.skip;

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

/** Starts a process that takes the lock of the data directory. Resolves when it holds the lock. */
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
    expect((refused as Error).message).toContain(`(pid ${child.pid}, ${describeUser(process.geteuid!())})`);
  });

  test('kill -9 of the holder frees the lock', async () => {
    const child = await startHolder(root);
    await kill(child);
    const lock = await DataDirLock.acquire(root);
    await lock.release();
  });

  test('a released lock can be taken again, and releasing twice is harmless', async () => {
    const first = await DataDirLock.acquire(root);
    await expect(DataDirLock.acquire(root)).rejects.toThrow(`(pid ${process.pid}, `);
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

  test('who holds it is known from outside, by pid and user, and nobody is once it is free', async () => {
    await expect(findLockHolder(root)).resolves.toBeNull();
    const child = await startHolder(root);
    await expect(findLockHolder(root)).resolves.toEqual({ pid: child.pid, uid: process.geteuid!() });
    await kill(child);
    await expect(findLockHolder(root)).resolves.toBeNull();
    // The search for the holder made no file and took no lock.
    await (await DataDirLock.acquire(root)).release();
    await expect(findLockHolder(join(root, 'missing'))).resolves.toBeNull();
    await expect(readdir(root)).resolves.toEqual(['klatch.lock']);
  });

  test('nobody holds it who cannot open its file, which is the owner of the directory alone', async () => {
    // A stranger binds the abstract socket that formerly was the lock, as any local user could.
    const stranger = createServer();
    const name = createHash('sha256').update(root).digest('hex');
    await new Promise<void>((resolve) => stranger.listen({ path: `\0klatch:${name}` }, resolve));
    try {
      await using cleanUp = new AsyncDisposableStack();
      const lock = await DataDirLock.acquire(root);
      cleanUp.defer(() => lock.release());
      const { mode, uid } = await lstat(join(root, 'klatch.lock'));
      expect({ mode: mode & 0o777, uid }).toEqual({ mode: 0o600, uid: process.geteuid!() });
    } finally {
      stranger.close();
    }
  });

  test('what stands in the place of its file is refused in a sentence', async () => {
    await mkdir(join(root, 'klatch.lock'));
    await expect(DataDirLock.acquire(root)).rejects.toThrow(/klatch\.lock is not a file\. Remove it/);
    await rm(join(root, 'klatch.lock'), { recursive: true });
    // The lock file is not opened through a link, whose target may be a file that only root can open.
    await writeFile(join(root, 'elsewhere'), '');
    await symlink(join(root, 'elsewhere'), join(root, 'klatch.lock'));
    await expect(DataDirLock.acquire(root)).rejects.toThrow(DataDirError);
  });

  asRoot('a file of a third user in a directory that others write to is refused with that user’s name', async () => {
    await chmod(root, 0o777);
    await writeFile(join(root, 'klatch.lock'), '');
    await chown(join(root, 'klatch.lock'), 4_321, 4_321);
    await expect(DataDirLock.acquire(root)).rejects.toThrow('klatch.lock belongs to the user with uid 4321. Remove it');
  });

  asRoot('root leaves a file that the owner of the directory can open', async () => {
    await chown(root, 4_321, 4_322);
    await (await DataDirLock.acquire(root)).release();
    expect(await lstat(join(root, 'klatch.lock'))).toMatchObject({ uid: 4_321, gid: 4_322 });
  });
});
