import { appendFile, chmod, chown, mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { loadConfig } from '../../../src/config/load.ts';
import { ensureServerKeys, readServerKeys } from '../../../src/config/keys/server-key-files.ts';
import { testServer } from '../../support/database.ts';
import { runKlatch, Workspace, type Ended } from '../program.ts';

let workspace: Workspace;

beforeEach(async () => {
  workspace = await Workspace.create();
  // No test here connects to the database.
  await workspace.configure(testServer('none'));
});

afterEach(async () => workspace.remove());

const keyFile = (name: 'private' | 'public', folder = workspace.folder): string =>
  join(folder, `server-key.${name}.pem`);

/** The lines for server.conf that the command prints. */
const settingOf = ({ stdout }: Ended): string => stdout.slice(stdout.indexOf('modules.security'));

describe('klatch keys generate', () => {
  test('makes a pair beside server.conf and prints lines that make it sign', async () => {
    const ended = await workspace.run(['keys', 'generate']);
    expect(ended).toMatchObject({ code: 0, stderr: '' });
    expect((await stat(keyFile('private'))).mode & 0o777).toBe(0o600);
    expect((await stat(keyFile('public'))).mode & 0o777).toBe(0o644);
    await workspace.configure(testServer('none'), [settingOf(ended)]);
    const { config, warnings } = loadConfig(workspace.file, { env: {} });
    expect(warnings).toEqual([]);
    const [key] = readServerKeys(config.serverSigningKeys);
    expect(ended.stdout).toContain(key!.id);
    expect(ended.stdout).toContain(key!.public);
    expect(ended.stdout).not.toContain((await readFile(keyFile('private'), 'utf8')).split('\n')[1]);
  });

  test('overwrites neither file', async () => {
    for (const name of ['private', 'public'] as const) {
      await writeFile(keyFile(name), 'mine');
      const { code, stdout, stderr } = await workspace.run(['keys', 'generate']);
      expect({ code, stdout }).toEqual({ code: 73, stdout: '' });
      expect(stderr).toBe(
        `klatch: ${keyFile(name)} is there already, and nothing was written: give --dir a folder of its own for the new pair\n`,
      );
      expect(await readFile(keyFile(name), 'utf8')).toBe('mine');
      await rm(keyFile(name));
    }
  });

  test('with --dir puts a second pair before those that are configured, in a list that can be taken as it is', async () => {
    const first = await workspace.run(['keys', 'generate']);
    await workspace.configure(testServer('none'), [settingOf(first)]);
    const folder = join(workspace.folder, 'deep/keys 2027');
    const second = await workspace.run(['keys', 'generate', '--dir', folder, '--json']);
    expect(second).toMatchObject({ code: 0, stderr: '' });
    const { id, files, setting } = JSON.parse(second.stdout);
    expect(files).toEqual({ private: keyFile('private', folder), public: keyFile('public', folder) });
    await workspace.configure(testServer('none'), [setting]);
    const { config } = loadConfig(workspace.file, { env: {} });
    expect(config.serverSigningKeys.map((pair) => pair.private)).toEqual([
      keyFile('private', folder),
      keyFile('private'),
    ]);
    expect(readServerKeys(config.serverSigningKeys)[0]!.id).toBe(id);
  });

  test('prints lines that at the end of what setup wrote replace its list', async () => {
    await rm(workspace.file);
    await workspace.run(['setup', '--embedded', '--base-uri', 'https://chat.example.org']);
    const folder = join(workspace.folder, 'keys-2027');
    const ended = await workspace.run(['keys', 'generate', '--dir', folder]);
    expect(ended).toMatchObject({ code: 0, stderr: '' });
    expect(ended.stdout).toContain(`put these lines at the end of ${workspace.file}, outside all braces`);
    expect(ended.stdout).toContain('replace the list of before');
    await appendFile(workspace.file, settingOf(ended));
    const { config, warnings } = loadConfig(workspace.file, { env: {} });
    expect(warnings).toEqual([]);
    expect(config.serverSigningKeys.map((pair) => pair.private)).toEqual([
      keyFile('private', folder),
      keyFile('private'),
    ]);
  });

  test.each<[string, string[], NodeJS.ProcessEnv]>([
    ['--config', ['--config', '/nowhere/server.conf'], {}],
    ['KLATCH_CONFIG', [], { KLATCH_CONFIG: '/nowhere/server.conf' }],
  ])('makes nothing if the configuration that %s names is missing', async (_by, options, env) => {
    const folder = join(workspace.folder, 'pair');
    const ended = await runKlatch(['keys', 'generate', '--dir', folder, ...options], env);
    expect(ended).toMatchObject({ code: 78, stdout: '' });
    expect(ended.stderr).toContain('/nowhere/server.conf');
    await expect(stat(folder)).rejects.toMatchObject({ code: 'ENOENT' });
  });

  test('takes the place of a placeholder', async () => {
    const pair = '{ public = "<PUBLIC_KEY_FILE>", private = "<PRIVATE_KEY_FILE>" }';
    await workspace.configure(testServer('none'), [`modules.security.server-keys = [${pair}]`]);
    const ended = await workspace.run(['keys', 'generate']);
    expect(ended.code).toBe(0);
    expect(settingOf(ended).match(/public =/g)).toHaveLength(1);
    expect(settingOf(ended)).not.toContain('<');
  });

  (process.geteuid?.() === 0 ? test : test.skip)(
    'run by root makes files and folders that the server, which runs as another user, can read',
    async () => {
      await mkdir(workspace.dataDir);
      await chown(workspace.dataDir, 12_345, 12_346);
      const folder = join(workspace.folder, 'new/keys');
      expect((await workspace.run(['keys', 'generate', '--dir', folder])).code).toBe(0);
      expect(await stat(keyFile('private', folder))).toMatchObject({ uid: 12_345, gid: 12_346 });
      for (const made of [folder, join(workspace.folder, 'new')]) {
        const { uid, gid, mode } = await stat(made);
        expect([uid, gid, mode & 0o777]).toEqual([0, 12_346, 0o750]);
      }
    },
  );
});

describe('klatch keys list', () => {
  const configurePairs = (folders: readonly string[]): Promise<void> => {
    const pairs = folders.map((folder) => ({ public: keyFile('public', folder), private: keyFile('private', folder) }));
    return workspace.configure(testServer('none'), [`modules.security.server-keys = ${JSON.stringify(pairs)}`]);
  };

  test('says what makes the first pair where there is none', async () => {
    expect(await workspace.run(['keys', 'list'])).toMatchObject({
      code: 0,
      stdout: 'There are no server keys: "klatch keys generate" makes a pair.\n',
    });
  });

  test('shows the pairs in order, and that the first three sign', async () => {
    const folders = [1, 2, 3, 4].map((n) => join(workspace.folder, `pair-${n}`));
    for (const folder of folders) ensureServerKeys(folder);
    await configurePairs(folders);
    const keys = readServerKeys(loadConfig(workspace.file, { env: {} }).config.serverSigningKeys);
    const { code, stdout } = await workspace.run(['keys', 'list']);
    expect(code).toBe(0);
    const lines = stdout.trimEnd().split('\n').slice(1);
    for (const [index, line] of lines.entries()) {
      expect(line).toMatch(index < 3 ? /^signs / : /^only shown \(3 sign\) /);
      expect(line).toContain(`  ${keys[index]!.id}  ${keys[index]!.public}  ${folders[index]}/`);
    }
    expect(lines).toHaveLength(4);
    const json = await workspace.run(['keys', 'list', '--json']);
    expect(JSON.parse(json.stdout).keys.map((key: { signs: boolean }) => key.signs)).toEqual([true, true, true, false]);
  });

  test('names what is wrong with a pair and ends with 78, and warns of a private file that is open to all', async () => {
    const folders = ['good', 'gone'].map((name) => join(workspace.folder, name));
    for (const folder of folders) ensureServerKeys(folder);
    await rm(keyFile('private', folders[1]));
    await chmod(keyFile('private', folders[0]), 0o644);
    await configurePairs(folders);
    const { code, stdout, stderr } = await workspace.run(['keys', 'list']);
    expect(code).toBe(78);
    expect(stdout).toMatch(/\nsigns .*\nbroken /);
    expect(stderr).toContain(`${keyFile('private', folders[1])} does not exist`);
    expect(stderr).toContain(`warning: ${keyFile('private', folders[0])} can be read by every user`);
    const json = await workspace.run(['keys', 'list', '--json']);
    expect(json.code).toBe(78);
    expect(JSON.parse(json.stdout).keys[1]).toMatchObject({ signs: false, problems: [expect.any(String)] });
  });
});

test('klatch keys rotate-secret takes no secret from the command line, no empty one, and asks nobody without a terminal', async () => {
  const large = join(workspace.folder, 'large');
  await writeFile(large, 'x'.repeat(70_000));
  const run = (...args: string[]): Promise<Ended> => workspace.run(['keys', 'rotate-secret', ...args]);
  const [nobody, argument, missing, empty, tooLarge] = await Promise.all([
    run(),
    run('the old secret'),
    run('--old-secret-file', join(workspace.folder, 'no-such-file')),
    run('--old-secret-file', '/dev/null'),
    run('--old-secret-file', large),
  ]);
  expect(nobody).toMatchObject({ code: 64, stderr: expect.stringContaining('--old-secret-file FILE') });
  expect(argument).toMatchObject({ code: 64 });
  expect(missing).toMatchObject({
    code: 64,
    stderr: `klatch: --old-secret-file: ${join(workspace.folder, 'no-such-file')} does not exist\n`,
  });
  expect(empty).toMatchObject({ code: 64, stderr: expect.stringContaining('there is no secret in it') });
  expect(tooLarge).toMatchObject({ code: 64, stderr: expect.stringContaining('too large for a secret') });
});
