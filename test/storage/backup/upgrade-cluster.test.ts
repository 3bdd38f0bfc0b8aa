import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, cp, mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { upgradeSteps } from '../../../src/storage/backup/upgrade-cluster.ts';
import { findPostmaster, waitUntilGone } from '../../../src/storage/embedded/postmaster.ts';
import { findPrograms } from '../../../src/storage/embedded/programs.ts';
import { Program, root, SECRET, Workspace } from '../../cli/program.ts';
import { postJson } from '../../support/server.ts';

/** The folder of Debian's PostgreSQL programs. The upgrade moves their data to the newest programs from npm. */
const OLD_BIN_DIR = '/usr/lib/postgresql/15/bin';
const SCRIPT = join(root, 'test/support/upgrading.ts');

(existsSync(join(OLD_BIN_DIR, 'initdb')) ? describe : describe.skip)('an upgrade from PostgreSQL 15', () => {
  let programs: string;
  let newBinDir: string;
  let newMajor: number;
  let workspace: Workspace;
  /** A stopped server of the old version; each test gets a copy. */
  let former: Workspace;
  let path: string;

  beforeAll(async () => {
    programs = await mkdtemp(join(tmpdir(), 'klatch-programs-'));
    await chmod(programs, 0o755);
    // Copies the programs: PostgreSQL's user may not be able to open the folder of the checkout's own ones.
    const found = await findPrograms({ binDir: null, clusterMajor: null, clusterDir: '' });
    await cp(dirname(found.binDir), join(programs, 'native'), { recursive: true, verbatimSymlinks: true });
    newBinDir = join(programs, 'native/bin');
    newMajor = found.major;
    former = await Workspace.create();
    await chmod(former.folder, 0o711);
    await useBinDir(OLD_BIN_DIR, former);
    const { server, url } = await former.serve();
    const { stdout } = await former.run(['group', 'create', 'Kept', '--json']);
    path = new URL((JSON.parse(stdout) as { webhook: string }).webhook).pathname;
    for (const text of ['one', 'two', 'three']) await postJson(url + path, { text });
    await stop(server);
  });
  afterAll(async () => {
    await former.remove();
    await rm(programs, { recursive: true, force: true });
  });

  beforeEach(async () => {
    workspace = await Workspace.create();
    await chmod(workspace.folder, 0o711);
    // `--archive` keeps the owners of the files.
    execFileSync('cp', ['--archive', former.dataDir, workspace.dataDir]);
  });
  afterEach(async () => {
    // A killed upgrade may have left servers running.
    for (const folder of await clusters()) {
      const postmaster = await findPostmaster(folder);
      if (postmaster === null) continue;
      process.kill(postmaster.pid, 'SIGQUIT');
      await waitUntilGone(postmaster.pid, folder, 20_000);
    }
    await workspace.remove();
  });

  const useBinDir = (binDir: string, place = workspace): Promise<void> =>
    place.write([
      `secret = "${SECRET}"`,
      'http { port = 0, base-uri = "http://127.0.0.1" }',
      'metrics.port = 0',
      'endpoints = []',
      'data-dir = "data"',
      `services.postgresql { embedded = true, bin-dir = "${binDir}" }`,
    ]);

  async function stop(server: Program): Promise<void> {
    server.process.kill('SIGTERM');
    expect(await server.ended).toMatchObject({ code: 0 });
  }

  const names = async (): Promise<string[]> =>
    (await readdir(workspace.dataDir)).filter((name) => /^postgresql(?:\.(?:new|old|upgraded).*)?$/.test(name)).sort();

  async function clusters(): Promise<string[]> {
    const folders = (await names()).map((name) => join(workspace.dataDir, name));
    return folders.flatMap((folder) => [folder, join(folder, 'postgresql')]);
  }

  const major = async (): Promise<number> =>
    Number(await readFile(join(workspace.dataDir, 'postgresql/PG_VERSION'), 'utf8'));

  /** Checks that a server starts, and that the next post gets this seq after the moved messages. */
  async function expectUsable(next: number): Promise<void> {
    const { server, url } = await workspace.serve();
    expect(await postJson(url + path, { text: 'next' })).toMatchObject({ status: 200, body: { id: `1:${next}` } });
    await stop(server);
  }

  test('moves the data, keeps the old files until they are to be removed, and has nothing to do the next time', async () => {
    await useBinDir(newBinDir);
    const refused = await workspace.run(['serve']);
    expect(refused).toMatchObject({ code: 69, stderr: expect.stringContaining('"klatch db upgrade"') });
    const upgraded = await workspace.run(['db', 'upgrade']);
    expect(upgraded).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(new RegExp(`^Moved \\d+ rows from PostgreSQL 15 to ${newMajor}\\.\n`)),
    });
    expect(await names()).toEqual(['postgresql', 'postgresql.old-15']);
    expect(await major()).toBe(newMajor);
    await expectUsable(4);
    const again = await workspace.run(['db', 'upgrade', '--remove-old', '--json']);
    expect(JSON.parse(again.stdout)).toMatchObject({
      kind: 'current',
      major: newMajor,
      removed: [join(workspace.dataDir, 'postgresql.old-15')],
    });
    expect(await names()).toEqual(['postgresql']);
    await expectUsable(5);
  });

  test.each(upgradeSteps)(
    'that is killed at "%s" leaves the old or the new files usable, and a repeat finishes it',
    async (step) => {
      await useBinDir(newBinDir);
      const program = new Program([process.execPath, SCRIPT, workspace.file, step]);
      expect(await program.ended).toMatchObject({ signal: 'SIGKILL', stderr: '' });
      if (step === 'old-renamed') {
        expect(await names()).toEqual(['postgresql.old-15', 'postgresql.upgraded']);
        const refused = await workspace.run(['serve']);
        expect(refused).toMatchObject({ code: 69, stderr: expect.stringContaining('run "klatch db upgrade"') });
        expect((await workspace.run(['doctor'])).stdout).toContain('was cut off');
      } else if (step === 'swapped') {
        expect(await major()).toBe(newMajor);
      } else {
        expect(await major()).toBe(15);
      }
      if (step === 'complete') {
        // An administrator who continues with the old version loses no later writes.
        await useBinDir(OLD_BIN_DIR);
        await expectUsable(4);
        expect(await names()).toEqual(['postgresql']);
        await useBinDir(newBinDir);
      }
      expect(await workspace.run(['db', 'upgrade'])).toMatchObject({ code: 0, stderr: expect.any(String) });
      expect(await major()).toBe(newMajor);
      expect(await names()).toEqual(['postgresql', 'postgresql.old-15']);
      await expectUsable(step === 'complete' ? 5 : 4);
    },
  );

  test('that fails or is stopped leaves nothing behind, and says which programs it lacks', async () => {
    await useBinDir(newBinDir);
    await mkdir(join(workspace.folder, 'nothing'));
    const missing = await workspace.run(['db', 'upgrade', '--old-bin-dir', join(workspace.folder, 'nothing')]);
    expect(missing).toMatchObject({ code: 1, stderr: expect.stringContaining('install the package postgresql-15') });
    const stopped = workspace.start(['db', 'upgrade']);
    // Waits until the old server runs.
    while ((await findPostmaster(join(workspace.dataDir, 'postgresql')))?.status !== 'ready');
    stopped.process.kill('SIGTERM');
    expect(await stopped.ended).toMatchObject({ signal: 'SIGTERM' });
    expect(await names()).toEqual(['postgresql']);
    expect(await findPostmaster(join(workspace.dataDir, 'postgresql'))).toBeNull();
    await useBinDir(OLD_BIN_DIR);
    await expectUsable(4);
  });
});
