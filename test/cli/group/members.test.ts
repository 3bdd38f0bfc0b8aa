import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { postJson } from '../../support/server.ts';
import { runKlatch, Workspace } from '../program.ts';

describe('the commands about members and messages', () => {
  let database: TestDatabase;
  let workspace: Workspace;
  let webhook: string;
  let group: number;

  beforeAll(async () => {
    database = await createTestDatabase();
    workspace = await Workspace.create();
    await workspace.configure(database.target);
    const { url } = await workspace.serve();
    const { stdout } = await workspace.run(['group', 'create', 'Ops', '--json']);
    const created = JSON.parse(stdout) as { id: number; webhook: string };
    group = created.id;
    webhook = url + new URL(created.webhook).pathname;
    for (const nick of ['alice', 'bob']) await workspace.run(['user', 'create', nick, '--name', `${nick} Example`]);
  });
  afterAll(async () => {
    await workspace.remove();
    await database.drop();
  });

  async function texts(): Promise<string[]> {
    const rows = await database.query(
      (sql) => sql<{ text: string }[]>`select text from message where conversation_id = ${group} order by seq`,
    );
    return rows.map(({ text }) => text);
  }

  test('add, list and remove members', async () => {
    const added = await workspace.run(['group', 'add-member', 'Ops', 'alice']);
    expect(added).toMatchObject({ code: 0, stdout: `alice is now a member of group ${group} with the role member.\n` });
    const promoted = await workspace.run(['group', 'add-member', 'Ops', 'alice', '--role', 'owner']);
    expect(promoted.stdout).toBe(`alice is a member of group ${group} with the role owner.\n`);
    const members = await workspace.run(['user', 'list', '--group', 'Ops']);
    expect(members.stdout).toMatch(
      /^ID +NICK +ROLE +ACCOUNT +IN GROUP +NAME\n\d+ +alice +user +active +owner +alice Example\n$/,
    );
    const all = await workspace.run(['user', 'list', '--limit', '1']);
    expect(all.stdout).toMatch(
      /^ID +NICK +ROLE +ACCOUNT +GROUPS +NAME\n\d+ +alice +user +active +1 +alice Example\n\n/,
    );
    expect(all.stdout).toMatch(/\nThere are more: repeat the command with --after alice\n$/);
    await workspace.run(['group', 'add-member', 'Ops', 'bob']);
    const removed = await workspace.run(['group', 'remove-member', 'Ops', 'bob']);
    expect(removed).toMatchObject({ code: 0, stdout: `bob is no member of group ${group} now.\n` });
    await workspace.run(['group', 'add-member', 'Ops', 'bob', '--role', 'admin']);
    const demoted = await workspace.run(['group', 'add-member', 'Ops', 'bob', '--role', 'member']);
    expect(demoted.stdout).toBe(
      `bob is a member of group ${group} with the role member.\n` +
        `bob could see the integration token, which still works: klatch group token rotate ${group} replaces it.\n`,
    );
    const gone = await workspace.run(['group', 'remove-member', 'Ops', 'bob', '--revoke-invites']);
    expect(gone.stdout.split('\n')).toEqual([
      `bob is no member of group ${group} now.`,
      demoted.stdout.split('\n')[1],
      '',
    ]);
    const again = await workspace.run(['group', 'remove-member', 'Ops', 'bob']);
    const absent = `klatch: bob is not a member of group ${group}: look at the list of its members\n`;
    expect(again).toMatchObject({ code: 1, stderr: absent });
    expect(await workspace.run(['group', 'add-member', 'Ops', 'bob', '--role', 'king'])).toMatchObject({ code: 64 });
  });

  test('post a message from the argument or from standard input, and print its id', async () => {
    await workspace.run(['group', 'add-member', 'Ops', 'alice']);
    const before = (await texts()).length;
    const send = ['send', 'Ops', '--as', 'alice'];
    const sent = await workspace.run([...send, 'hello there']);
    expect(sent).toEqual({ code: 0, signal: null, stdout: `${group}:${before + 1}\n`, stderr: '' });
    expect(await workspace.pipe('piped\nlines\n', send)).toMatchObject({ code: 0, stdout: `${group}:${before + 2}\n` });
    expect(await workspace.pipe('dash\r\n', [...send, '-'])).toMatchObject({ code: 0 });
    const env = { KLATCH_CONFIG: workspace.file };
    expect(await runKlatch([...send, '--', '-5 degrees'], env)).toMatchObject({ code: 0 });
    expect((await texts()).slice(before)).toEqual(['hello there', 'piped\nlines', 'dash', '-5 degrees']);
  });

  test('post a message once with a key, and say in JSON that it is a repeat', async () => {
    await workspace.run(['group', 'add-member', 'Ops', 'alice']);
    const send = ['send', 'Ops', 'nightly', '--as', 'alice', '--idempotency-key', 'night-1', '--json'];
    const [first, second] = [await workspace.run(send), await workspace.run(send)];
    const posted = JSON.parse(first.stdout) as { seq: number };
    expect(posted).toMatchObject({
      id: `${group}:${posted.seq}`,
      conversation: group,
      text: 'nightly',
      repeated: false,
    });
    expect(JSON.parse(second.stdout)).toEqual({ ...posted, repeated: true });
  });

  test('refuse to post what is no message, with the code that says whose fault it is', async () => {
    await workspace.run(['group', 'add-member', 'Ops', 'alice']);
    const before = await texts();
    const send = ['send', 'Ops', '--as', 'alice'];
    const [blank, long, huge, binary, stranger, nobody] = await Promise.all([
      workspace.pipe('\n', send),
      workspace.pipe('x'.repeat(40_001), send),
      workspace.pipe('x'.repeat(1024 * 1024 + 1), send),
      workspace.pipe(Buffer.from([0x61, 0xff, 0x62]), send),
      workspace.run(['send', 'Ops', 'hi', '--as', 'bob']),
      workspace.run(['send', 'Ops', 'hi']),
    ]);
    const refused = (sentence: string) => ({ code: 1, stdout: '', stderr: `klatch: ${sentence}\n` });
    expect(blank).toMatchObject(refused('text: must hold something other than white space'));
    expect(long).toMatchObject(refused('text: has 40001 characters (code points), at most 40000 are allowed'));
    expect(huge).toMatchObject(refused('the text on standard input is longer than 1 MiB: send less at a time'));
    expect(binary).toMatchObject(
      refused('the text on standard input is not valid UTF-8: convert it first, for instance with iconv'),
    );
    expect(stranger).toMatchObject(
      refused(`bob is not a member of group ${group}, and only members can post: add bob to the group first`),
    );
    expect(nobody).toMatchObject({ code: 64, stderr: expect.stringContaining('--as <nick>') });
    // In JSON with its escapes, this text exceeds what the server reads: the server would close the connection without
    // an answer.
    const escaped = await workspace.pipe('\u0001'.repeat(300_000), send);
    expect(escaped).toMatchObject(
      refused('this is more than the server takes in one request, 1 MiB: send less at a time'),
    );
    expect(await texts()).toEqual(before);
  });

  test('let a person in by a link, change the account, and take it out of use', async () => {
    await workspace.run(['user', 'create', 'carol']);
    const invited = await workspace.run(['user', 'invite', 'carol']);
    expect(invited).toMatchObject({ code: 0, stderr: '' });
    expect(invited.stdout).toMatch(
      /^http\S+\/v1\/sign-in#kll_[\w-]{43}\n\nWhoever opens this link first is signed in as carol\. It is good once, until \S+Z\.\n$/,
    );
    const updated = await workspace.run(['user', 'update', 'carol', '--admin', 'yes', '--address', 'C@Example.org']);
    expect(updated).toMatchObject({ code: 0, stdout: expect.stringMatching(/^role: +admin$/m) });
    expect(await workspace.run(['user', 'update', 'carol', '--admin', 'maybe'])).toMatchObject({ code: 64 });
    expect(await workspace.run(['user', 'update', 'carol'])).toMatchObject({
      code: 1,
      stderr: 'klatch: input: give name, admin or address\n',
    });
    expect(await workspace.run(['user', 'deactivate', 'carol'])).toMatchObject({
      code: 0,
      stdout: 'The account carol is deactivated: its sessions and tokens have ended.\n',
    });
    expect(await workspace.run(['user', 'invite', 'carol'])).toMatchObject({ code: 1 });
    expect(await workspace.run(['user', 'activate', 'carol', '--json'])).toMatchObject({ code: 0 });
    expect(await workspace.run(['user', 'invite', 'carol'])).toMatchObject({ code: 0 });
  });

  test('archive a group and open it again', async () => {
    const archived = await workspace.run(['group', 'archive', 'Ops']);
    expect(archived).toMatchObject({
      code: 0,
      stdout: `Group ${group} is archived: posts are answered 410 until \`klatch group unarchive ${group}\`.\n`,
    });
    expect((await postJson(webhook, { text: 'closed' })).status).toBe(410);
    const refused = await workspace.run(['send', 'Ops', 'hi', '--as', 'alice']);
    expect(refused).toMatchObject({ code: 1, stderr: 'klatch: This group is archived\n' });
    const list = await workspace.run(['group', 'list', '--archived']);
    expect(list.stdout).toMatch(new RegExp(`^${group} +\\d+ +0 +\\d+ +yes +Ops$`, 'm'));
    expect((await workspace.run(['group', 'list', '--no-archived'])).stdout).toBe(
      'There is no such group. `klatch group create TITLE` makes one.\n',
    );
    const again = await workspace.run(['group', 'archive', 'Ops']);
    expect(again).toMatchObject({ code: 0, stdout: `Group ${group} is archived already.\n` });
    const opened = await workspace.run(['group', 'unarchive', 'Ops']);
    expect(opened).toMatchObject({ code: 0, stdout: `Group ${group} is open again.\n` });
    expect((await workspace.run(['group', 'unarchive', 'Ops'])).stdout).toBe(`Group ${group} is not archived.\n`);
    expect((await postJson(webhook, { text: 'open' })).status).toBe(200);
  });

  test('make somebody else the owner, and change what the group is called and who finds it', async () => {
    const { stdout } = await workspace.run(['group', 'create', 'Handed', '--json']);
    const { id } = JSON.parse(stdout) as { id: number };
    for (const nick of ['alice', 'bob']) await workspace.run(['group', 'add-member', 'Handed', nick]);
    await workspace.run(['group', 'add-member', 'Handed', 'alice', '--role', 'owner']);
    const transferred = await workspace.run(['group', 'transfer', 'Handed', 'bob']);
    expect(transferred).toMatchObject({ code: 0, stdout: `bob is the owner of group ${id} now.\n` });
    const members = await workspace.run(['user', 'list', '--group', 'Handed', '--json']);
    const { users } = JSON.parse(members.stdout) as { users: { nick: string; group_role: string }[] };
    expect(users.map(({ nick, group_role: role }) => [nick, role])).toEqual([
      ['alice', 'admin'],
      ['bob', 'owner'],
    ]);
    const updated = await workspace.run(['group', 'update', 'Handed', '--about', 'On call', '--public']);
    expect(updated.stdout).toBe(`Group ${id} is called Handed and is public.\n`);
    const again = await workspace.run(['group', 'update', 'Handed', '--public']);
    expect(again.stdout).toBe(`Group ${id} is so already.\n`);
    const info = await workspace.run(['group', 'info', 'Handed']);
    expect(info.stdout).toMatch(/^about: +On call\n(?:.*\n)*public: +yes$/m);
    const closed = await workspace.run(['group', 'update', 'Handed', '--no-public', '--about', '']);
    expect(closed.stdout).toBe(`Group ${id} is called Handed and is not public.\n`);
    expect(await workspace.run(['group', 'update', 'Handed'])).toMatchObject({
      code: 1,
      stderr: 'klatch: input: give one or more of "title", "about" and "public"\n',
    });
  });
});
