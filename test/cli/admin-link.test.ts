import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { callAs } from '../support/call.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { Workspace } from './program.ts';

let database: TestDatabase;
let workspace: Workspace;
let url: string;
beforeAll(async () => {
  database = await createTestDatabase();
  workspace = await Workspace.create();
  await workspace.configure(database.target);
  ({ url } = await workspace.serve());
});
afterAll(async () => {
  await workspace.remove();
  await database.drop();
});

const whoComesIn = async (link: string) => (await callAs({ url }, null, 'auth.verify', { link })).account;

test('admin-link makes the first administrator and a group, and prints an address that signs that one in', async () => {
  const { code, stdout, stderr } = await workspace.run(['admin-link']);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const [, link] =
    /^Open (https?:\/\/\S+\/#kll_[\w-]{43})\n\nMade the administrator admin\.\nMade the group Lobby\.\nWhoever opens /.exec(
      stdout,
    )!;
  const [, webhook] = /\nPost a message into Lobby:\n {2}curl -d 'Hello' (\S+)\n$/.exec(stdout)!;
  expect((await fetch(url + new URL(webhook!).pathname, { method: 'POST', body: 'Hello' })).status).toBe(200);
  expect(await whoComesIn(link!)).toMatchObject({ nick: 'admin', name: 'Administrator', role: 'admin' });

  // Another run makes a link for the same account: `--nick` names only an account that the command has to create.
  await workspace.run(['user', 'create', 'aaron', '--admin']);
  const again = await workspace.run(['admin-link', '--nick', 'root', '--json']);
  const made = JSON.parse(again.stdout) as { user: string; created: boolean; link: string };
  expect(made).toMatchObject({ user: 'admin', created: false, group: null });
  expect(await whoComesIn(made.link)).toMatchObject({ nick: 'admin' });

  // The command skips deactivated accounts, so the link is for the other administrator.
  await workspace.run(['user', 'deactivate', 'admin']);
  expect((await workspace.run(['admin-link'])).stdout).toContain('is signed in as aaron');
});

test('admin-link says what is wrong where the nick of the new administrator is taken', async () => {
  await workspace.run(['user', 'deactivate', 'aaron']);
  const { code, stderr } = await workspace.run(['admin-link', '--nick', 'aaron']);
  expect(code).not.toBe(0);
  expect(stderr).toMatch(/This nick is taken/);
});
