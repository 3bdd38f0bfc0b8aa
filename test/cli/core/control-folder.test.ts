import { once } from 'node:events';
import { chmod, chown, mkdir, rm, symlink } from 'node:fs/promises';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import {
  ControlFolderError,
  findControlSocket,
  prepareControlSocket,
} from '../../../src/data-dir/control-socket-path.ts';
import { createTestDatabase } from '../../support/database.ts';
import { Workspace } from '../program.ts';

const STRANGER = 4_321;
const asRoot = process.geteuid?.() === 0 ? test : test.skip;

describe('the control socket of a data directory whose path is too long for one', () => {
  let workspace: Workspace;
  let dataDir: string;
  let env: NodeJS.ProcessEnv;
  /** The folder of the control socket. */
  let folder: string;

  beforeEach(async () => {
    workspace = await Workspace.create();
    dataDir = join(workspace.folder, 'd'.repeat(120));
    const runtime = join(workspace.folder, 'run');
    await mkdir(dataDir, { mode: 0o700 });
    await mkdir(runtime);
    await chmod(runtime, 0o1777);
    env = { XDG_RUNTIME_DIR: runtime };
    folder = dirname(findControlSocket(dataDir, env));
    expect(dirname(folder)).toBe(runtime);
  });

  afterEach(async () => workspace.remove());

  /** Expects that both the server and the command line refuse the folder in its current state. */
  function expectRefusal(problem: RegExp): void {
    for (const path of [findControlSocket, prepareControlSocket]) {
      expect(() => path(dataDir, env)).toThrow(ControlFolderError);
      expect(() => path(dataDir, env)).toThrow(problem);
    }
  }

  test('is in a folder that the server makes for its user alone', async () => {
    const path = prepareControlSocket(dataDir, env);
    expect(path).toBe(join(folder, 'control.sock'));
    expect(findControlSocket(dataDir, env)).toBe(path);
    // The next start of the server uses the folder that this one has created.
    expect(prepareControlSocket(dataDir, env)).toBe(path);
  });

  test('is not used in a folder that others can open, and says what to do', async () => {
    await mkdir(folder);
    await chmod(folder, 0o755);
    expectRefusal(/does not have mode 0700, so another user could answer in place of the server\. Remove that folder/);
  });

  test('is not looked for behind a symbolic link', async () => {
    const elsewhere = join(workspace.folder, 'elsewhere');
    await mkdir(elsewhere, { mode: 0o700 });
    await symlink(elsewhere, folder);
    expectRefusal(/is not a folder/);
  });

  test('is not used where every user could replace the folder', async () => {
    await mkdir(folder, { mode: 0o700 });
    await chmod(dirname(folder), 0o777);
    expectRefusal(/is writable by every user and has no sticky bit/);
  });

  asRoot('is not used in a folder of another user, and that user is named', async () => {
    await mkdir(folder, { mode: 0o700 });
    await chown(folder, STRANGER, STRANGER);
    expectRefusal(/belongs to the user with uid 4321/);
    // The folder may belong to the owner of the data directory, who controls the server anyway.
    await chown(dataDir, STRANGER, STRANGER);
    expect(findControlSocket(dataDir, env)).toBe(join(folder, 'control.sock'));
  });

  test('a stranger who stands in for the server is asked nothing, and the server does not start there', async () => {
    const database = await createTestDatabase();
    await workspace.configure(database.target, [`data-dir = ${JSON.stringify(dataDir)}`]);
    const asked: string[] = [];
    const stranger = createServer((socket) => socket.on('data', (line) => asked.push(line.toString())));
    try {
      await mkdir(folder, { mode: 0o700 });
      if (process.geteuid?.() === 0) await chown(folder, STRANGER, STRANGER);
      else await chmod(folder, 0o711);
      stranger.listen(join(folder, 'control.sock'));
      await once(stranger, 'listening');
      const sentence = expect.stringMatching(/cannot be trusted: \S+ .*, so another user could answer/);
      for (const args of [['user', 'invite', 'Lobby'], ['status'], ['serve']]) {
        expect(await workspace.run(args, env)).toMatchObject({ code: 77, stderr: sentence });
      }
      expect(asked).toEqual([]);
      stranger.close();
      await rm(folder, { recursive: true });
      // Without the foreign folder, the same paths work.
      await workspace.start(['serve'], env).event('ready');
      expect(await workspace.run(['status'], env)).toMatchObject({ code: 0 });
    } finally {
      stranger.close();
      await database.drop();
    }
  });
});
