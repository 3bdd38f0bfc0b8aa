import { once } from 'node:events';
import { chmod, chown, cp, lstat, mkdir, readdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { findPrograms } from '../../../src/storage/embedded/programs.ts';
import { readPasswd } from '../../../src/data-dir/passwd.ts';
import { createTestDatabase } from '../../support/database.ts';
import { DatabaseProxy } from '../../support/database-proxy.ts';
import { eventually } from '../../support/eventually.ts';
import { holdOpen, isWaiting, until } from '../../storage/fixture.ts';
import { SECRET, Workspace } from '../program.ts';

/** The uid of a user that has a name, because initdb requires one. */
const OWNER = readPasswd().find(({ name }) => name === 'nobody')?.uid ?? 65_534;
/** These tests need root, which alone can become another user. */
const asRoot = process.geteuid?.() === 0 ? test : test.skip;

/** The real, effective, saved and file system user id of a process. */
async function usersOf(pid: number): Promise<number[]> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return /^Uid:\s+(.*)$/m.exec(status)![1]!.split(/\s+/).map(Number);
}

describe('a backup that root takes of a data directory of another user', () => {
  let workspace: Workspace;
  /** The backup file, in a folder that is closed to all users except root. */
  let file: string;

  beforeEach(async () => {
    workspace = await Workspace.create();
    await chmod(workspace.folder, 0o711);
    await mkdir(workspace.dataDir, { mode: 0o700 });
    if (process.geteuid?.() === 0) await chown(workspace.dataDir, OWNER, OWNER);
    await mkdir(join(workspace.folder, 'root'), { mode: 0o700 });
    file = join(workspace.folder, 'root/klatch.tar.gz');
  });

  afterEach(async () => workspace.remove());

  asRoot('is the work of that user, and the file is root’s', async () => {
    const database = await createTestDatabase();
    // OWNER may not enter the folder of the database's socket, so the backup connects over TCP, through a proxy.
    const proxy = await DatabaseProxy.start(database.target);
    try {
      await workspace.configure({ ...database.target, ...proxy.address });
      await workspace.run(['migrate']);
      for (const signal of [null, 'SIGTERM', 'SIGKILL'] as const) {
        const held = await holdOpen(database.target, (tx) => tx`lock table setting in access exclusive mode`);
        const backup = workspace.start(['backup', file, '--force']);
        await until(database, (sql) => isWaiting(sql, 'backup'));
        expect(await usersOf(backup.pid)).toEqual([OWNER, OWNER, OWNER, OWNER]);
        const ended = once(backup.process, 'close');
        if (signal !== null) backup.process.kill(signal);
        else await held.release();
        expect(await ended).toEqual(signal === null ? [0, null] : [null, signal]);
        await held.release();
        // After a kill -9 of the command, its child that names the file notices that, and removes the partial file.
        await eventually(
          async () => readdir(dirname(file)),
          (names) => names.every((name) => !name.endsWith('.partial')),
        );
        const { uid, mode } = await lstat(file);
        expect({ uid, mode: mode & 0o777 }).toEqual({ uid: 0, mode: 0o600 });
      }
      expect(await workspace.run(['restore', '--check', file])).toMatchObject({ code: 0 });
      const taken = await workspace.run(['backup', file]);
      expect(taken).toMatchObject({ code: 1, stderr: expect.stringContaining('is there already') });
    } finally {
      await proxy.stop();
      await database.drop();
    }
  });

  asRoot('touches nothing that this user may not touch, where the server is stopped', async () => {
    const { binDir } = await findPrograms({ binDir: null, clusterMajor: null, clusterDir: '' });
    // Copies the programs, because OWNER may not be allowed to enter the folder of the checkout.
    await cp(dirname(binDir), join(workspace.folder, 'native'), { recursive: true, verbatimSymlinks: true });
    await workspace.write([
      `secret = "${SECRET}"`,
      'http { port = 0, base-uri = "http://127.0.0.1" }',
      'data-dir = "data"',
      `services.postgresql { embedded = true, bin-dir = ${JSON.stringify(join(workspace.folder, 'native/bin'))} }`,
    ]);
    expect(await workspace.run(['migrate'])).toMatchObject({ code: 0, stderr: '' });
    expect(await workspace.run(['backup', file])).toMatchObject({ code: 0, stderr: '' });
    for (const name of await readdir(workspace.dataDir)) {
      expect({ name, uid: (await lstat(join(workspace.dataDir, name))).uid }).toEqual({ name, uid: OWNER });
    }
    // Another user owns a folder in the data directory. The command runs as root, but must not take over that folder.
    const foreign = join(workspace.dataDir, 'postgresql.run');
    await mkdir(foreign, { recursive: true });
    await chown(foreign, OWNER + 1, OWNER + 1);
    const refused = await workspace.run(['backup', file, '--force']);
    expect(refused).toMatchObject({ code: 69, stderr: expect.stringContaining(`the user with uid ${OWNER + 1}`) });
    expect((await lstat(foreign)).uid).toBe(OWNER + 1);
  });
});
