import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { postJson } from '../../support/server.ts';
import { Workspace } from '../program.ts';

/**
 * Texts with characters that control the text direction (override, isolate, marks), and with the C1 control that some
 * terminals read as ESC [.
 */
const TITLE = 'Alerts\u200fgnp';
const ABOUT = 'sent\u202e\u2066 by\u061c \u009b31m CI';
const UNSAFE = /[\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2028\u2029\u2066-\u2069]/;

describe('what commands print of others', () => {
  let database: TestDatabase;
  let workspace: Workspace;
  let id: number;
  let hook: number;

  beforeAll(async () => {
    database = await createTestDatabase();
    workspace = await Workspace.create();
    await workspace.configure(database.target, ['delivery.allow = [loopback]']);
    const { url } = await workspace.serve();
    const created = await workspace.run(['group', 'create', TITLE, '--json']);
    expect(created.stderr).toBe('');
    const group = JSON.parse(created.stdout) as { id: number; webhook: string };
    ({ id } = group);
    expect((await workspace.run(['group', 'update', String(id), '--about', ABOUT])).code).toBe(0);
    const webhook = url + new URL(group.webhook).pathname;
    const { body } = await postJson(`${webhook}/reverse`, { url: 'http://127.0.0.1:1/\u009b31m\u202e' });
    hook = body.id as number;
  });
  afterAll(async () => {
    await workspace.remove();
    await database.drop();
  });

  test('as JSON reads back as it was, and holds nothing that a terminal obeys or turns around', async () => {
    const info = await workspace.run(['group', 'info', String(id), '--json']);
    expect(info.stdout).not.toMatch(UNSAFE);
    expect(JSON.parse(info.stdout)).toMatchObject({ title: TITLE, about: ABOUT });
    const found = await workspace.run(['hook', 'info', String(hook), '--json']);
    expect(found.code).toBe(0);
    expect(found.stdout).not.toMatch(UNSAFE);
    expect(JSON.parse(found.stdout)).toMatchObject({ id: hook });
  });

  test('as text neither', async () => {
    for (const args of [
      ['group', 'info', String(id)],
      ['group', 'list'],
      ['hook', 'info', String(hook)],
      ['hook', 'list'],
    ]) {
      const { stdout } = await workspace.run(args);
      expect(stdout).not.toMatch(UNSAFE);
    }
  });
});

test('no command writes JSON past the function that makes it harmless', () => {
  const folders = ['src/cli', 'client/terminal'].map((name) => join(import.meta.dirname, '../../..', name));
  // These files may call JSON.stringify. They contain the safe function itself, an answer to the parent process, the
  // file of a sign-in, and a request to the server.
  const others = ['safe-text.ts', 'backup-rename.ts', 'chat-profile.ts', 'control-client.ts'];
  const files = folders
    .flatMap((folder) => readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((file) => join(folder, file)))
    .filter((file) => file.endsWith('.ts'));
  const writing = files.filter((file) => readFileSync(file, 'utf8').includes('JSON.stringify('));
  expect(writing.filter((file) => !others.includes(basename(file)))).toEqual([]);
});
