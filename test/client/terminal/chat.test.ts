import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { chmod } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { eventually } from '../../support/eventually.ts';
import { freePort } from '../../support/ports.ts';
import { LAUNCHER, MAIN } from '../../support/program-files.ts';
import { postJson } from '../../support/server.ts';
import { Terminal } from '../../support/terminal.ts';
import { Program, runKlatch, Workspace, type Ended } from '../../cli/program.ts';

let workspace: Workspace;
let database: TestDatabase;
let webhook: string;
let http: string;
let ports: { ws: number; tcp: number };
let running: Program;
const followers: Program[] = [];

beforeAll(async () => {
  workspace = await Workspace.create();
  database = await createTestDatabase();
  ports = { ws: await freePort(), tcp: await freePort() };
  const port = await freePort();
  await workspace.configure(database.target, [
    `http { port = ${port}, base-uri = "http://127.0.0.1:${port}" }`,
    `endpoints = [{ type = websocket, port = ${ports.ws} }, { type = tcp, port = ${ports.tcp} }]`,
  ]);
  const { server, url } = await workspace.serve();
  running = server;
  http = url;
  for (const nick of ['alice', 'bob']) await workspace.run(['user', 'create', nick]);
  const { stdout } = await workspace.run(['group', 'create', 'Lobby', '--owner', 'alice', '--json']);
  webhook = `${http}/v1/webhooks/${(JSON.parse(stdout) as { webhook: string }).webhook.split('/').at(-1)!}`;
  await workspace.run(['group', 'add-member', 'Lobby', 'bob']);
});

afterEach(async () => {
  for (const follower of followers.splice(0)) await follower.stop();
});

afterAll(async () => {
  await workspace.remove();
  await database.drop();
});

const env = (): NodeJS.ProcessEnv => ({
  XDG_CONFIG_HOME: join(workspace.folder, 'config'),
  XDG_STATE_HOME: join(workspace.folder, 'state'),
});
const profileFile = (name: string): string => join(workspace.folder, `config/klatch/chat-${name}.json`);

/** Makes a sign-in link with `klatch user invite`. */
async function link(nick: string): Promise<string> {
  const { stdout } = await workspace.run(['user', 'invite', nick, '--json']);
  return (JSON.parse(stdout) as { link: string }).link;
}

async function chat(...args: string[]): Promise<Ended> {
  return runKlatch(['chat', ...args], env());
}

/** Runs `klatch chat follow` until it is stopped, at the latest after the test. */
function follow(...args: string[]): Program {
  const program = new Program([LAUNCHER, 'chat', 'follow', ...args], { env: env() });
  followers.push(program);
  return program;
}

/** Runs a `klatch chat` command with this text on its standard input. */
async function piped(input: string | Buffer, ...args: string[]): Promise<Ended> {
  const program = new Program([LAUNCHER, 'chat', ...args], { env: env(), input });
  return program.ended;
}

/** Signs in, and stores the session in this profile. */
async function signIn(nick: string, profile: string, server = `ws://127.0.0.1:${ports.ws}`): Promise<void> {
  const ended = await piped(await link(nick), 'sign-in', '--server', server, '--link', '--profile', profile);
  expect(ended).toMatchObject({ code: 0, stdout: `Signed in as ${nick}.\n`, stderr: '' });
}

describe('klatch chat sign-in', () => {
  test('takes the link from standard input, over ws, tcp and the HTTP address, and keeps the session for the user alone', async () => {
    for (const server of [`ws://127.0.0.1:${ports.ws}`, `tcp://127.0.0.1:${ports.tcp}`, http]) {
      await signIn('alice', 'kept', server);
      expect(statSync(profileFile('kept')).mode & 0o777).toBe(0o600);
      expect(JSON.parse(readFileSync(profileFile('kept'), 'utf8'))).toMatchObject({
        server,
        account: { nick: 'alice' },
      });
      expect(await chat('list', '--profile', 'kept')).toMatchObject({ code: 0, stderr: '' });
    }
  });

  test('shows neither the link nor the token, on the screen or in the list of processes', async () => {
    const text = await link('alice');
    const terminal = new Terminal([LAUNCHER, 'chat', 'sign-in', '--server', http, '--link', '--profile', 'unseen'], {
      env: env(),
    });
    try {
      await terminal.shows('The sign-in link:');
      // Another text is pasted by mistake: the command asks for the link again.
      terminal.type('something else\r');
      await terminal.shows(/this is no sign-in link[^]*The sign-in link:/);
      terminal.type(`${text}\r`);
      await terminal.shows('Signed in as alice.');
      expect(await terminal.ended()).toBe(0);
      const { token } = JSON.parse(readFileSync(profileFile('unseen'), 'utf8')) as { token: string };
      expect(terminal.output).not.toContain(text.split('#')[1]);
      expect(terminal.output).not.toContain(token);
    } finally {
      await terminal.stop();
    }
    // A link in the arguments would be visible only for a moment: the program hides its arguments as soon as it runs.
    // And a link works only once.
    const shown = new Program([process.execPath, MAIN, 'chat', 'follow', '--profile', 'unseen', '--server', http], {
      env: env(),
    });
    await eventually(
      () => readFileSync(`/proc/${shown.pid}/cmdline`, 'utf8'),
      (line) => !line.includes('follow') && !line.includes('node'),
    );
    await shown.stop();
  });

  test('refuses a link that was used, and says where it cannot go', async () => {
    const text = await link('alice');
    const options = ['--profile', 'twice', '--link', '--server'];
    expect(await piped(text, 'sign-in', ...options, http)).toMatchObject({ code: 0 });
    const again = await piped(text, 'sign-in', ...options, http);
    expect(again).toMatchObject({
      code: 1,
      stderr: 'klatch: This sign-in link was used, has expired, or never existed: ask for a new one\n',
    });
    expect(await piped(text, 'sign-in', ...options, 'tcp://127.0.0.1:1')).toMatchObject({
      code: 69,
      stderr: expect.stringMatching(/^klatch: tcp:\/\/127\.0\.0\.1:1 cannot be reached/),
    });
    expect(await piped(text, 'sign-in', ...options, 'chat.example.org')).toMatchObject({
      code: 64,
      stderr: expect.stringContaining('--server: give the server as'),
    });
    expect(await chat('sign-in', '--server', http)).toMatchObject({
      code: 64,
      stderr: expect.stringContaining('give one of'),
    });
    for (const { stderr } of [again]) expect(stderr).not.toContain(text.split('#')[1]);
  });

  test('takes what klatch user invite prints as it is', async () => {
    const { stdout } = await workspace.run(['user', 'invite', 'alice']);
    expect(stdout.trimEnd().split('\n')).toHaveLength(3);
    const options = ['sign-in', '--server', http, '--profile', 'as-printed', '--link'];
    expect(await piped(`\r\n${stdout}`, ...options)).toMatchObject({ code: 0, stdout: 'Signed in as alice.\n' });
  });

  test.each([
    ['kls_none-of-links', 'this is no sign-in link'],
    ['Whoever opens this link first is signed in as alice.\n', 'this is no sign-in link'],
    ['http://127.0.0.1:9090/v1/sign-in', 'this is no sign-in link'],
    ['\n \n', 'The sign-in link is expected on standard input, which is empty'],
  ])('says of %j on standard input that it is no link, without the text itself', async (input, sentence) => {
    const ended = await piped(input, 'sign-in', '--server', http, '--link', '--profile', 'none');
    expect(ended).toMatchObject({ code: 64, stdout: '', stderr: expect.stringContaining(`klatch: ${sentence}`) });
    expect(ended.stderr).not.toContain('kls_none-of-links');
  });

  test('takes an app password, which is created with a label and an end, and creates no other', async () => {
    await signIn('alice', 'own');
    const created = await chat('app-password', 'report', '--days', '2', '--profile', 'own');
    expect(created).toMatchObject({ code: 0, stdout: expect.stringMatching(/^kls_\S{43}\n$/), stderr: '' });
    const options = ['sign-in', '--server', http, '--token', '--profile', 'of-program'];
    expect(await piped(created.stdout, ...options)).toMatchObject({ code: 0, stdout: 'Signed in as alice.\n' });
    expect((await chat('list', '--profile', 'of-program')).stdout).toMatch(/Lobby\n/);
    const another = await chat('app-password', 'another', '--profile', 'of-program');
    expect(another).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('cannot create another') });
  });

  test('with a token keeps that of a bot', async () => {
    await signIn('alice', 'of-token');
    const { token } = JSON.parse(readFileSync(profileFile('of-token'), 'utf8')) as { token: string };
    const options = ['sign-in', '--server', http, '--token', '--profile', 'by-token'];
    expect(await piped(`${token}\n\nKeep it.\n`, ...options)).toMatchObject({
      code: 0,
      stdout: 'Signed in as alice.\n',
    });
    const wrong = await piped('kls_none', ...options);
    expect(wrong).toMatchObject({ code: 1 });
    expect(wrong.stderr).not.toContain('kls_none');
  });

  test('is needed for everything else; a file that is open to others is refused', async () => {
    expect(await chat('list', '--profile', 'nobody')).toMatchObject({
      code: 78,
      stderr: expect.stringContaining('klatch chat sign-in'),
    });
    await signIn('alice', 'open');
    await chmod(profileFile('open'), 0o644);
    const refused = await chat('list', '--profile', 'open');
    expect(refused).toMatchObject({ code: 77, stderr: expect.stringContaining('chmod 600') });
    writeFileSync(profileFile('open'), '{"token":"kls_x', { mode: 0o600 });
    await chmod(profileFile('open'), 0o600);
    expect(await chat('list', '--profile', 'open')).toMatchObject({
      code: 78,
      stderr: expect.stringContaining('sign in again'),
    });
  });

  test('is undone by sign-out, on the server as well', async () => {
    await signIn('alice', 'gone');
    const kept = readFileSync(profileFile('gone'));
    expect(await chat('sign-out', '--profile', 'gone')).toMatchObject({ code: 0, stdout: 'Signed out.\n', stderr: '' });
    expect(await chat('list', '--profile', 'gone')).toMatchObject({ code: 78 });
    writeFileSync(profileFile('gone'), kept, { mode: 0o600 });
    expect(await chat('list', '--profile', 'gone')).toMatchObject({
      code: 1,
      stderr: 'klatch: the session has ended: sign in again with `klatch chat sign-in`\n',
    });
    expect(await chat('sign-out', '--profile', 'gone')).toMatchObject({ code: 0 });
  });
});

describe('klatch chat', () => {
  beforeAll(async () => {
    await signIn('alice', 'a');
    await signIn('bob', 'b', `tcp://127.0.0.1:${ports.tcp}`);
  });

  test('writes by number, title and nick, prints the id, and reads it back; once for a client id', async () => {
    const { stdout: id } = await chat('send', 'Lobby', 'one', '--profile', 'a');
    expect(id).toMatch(/^1:\d+\n$/);
    const keyed = ['send', '1', 'two', '--client-id', 'x-1', '--profile', 'b'];
    expect((await chat(...keyed)).stdout).toBe((await chat(...keyed)).stdout);
    expect(await piped('a\nb\n', 'send', 'lobby', '-', '--profile', 'b')).toMatchObject({ code: 0 });
    const { stdout } = await chat('read', 'Lobby', '--last', '3', '--profile', 'a');
    expect(stdout).toMatch(
      /^\d\d:\d\d Lobby #\d+ alice: one\n\d\d:\d\d Lobby #\d+ bob: two\n\d\d:\d\d Lobby #\d+ bob: a\n {4}\| b\n$/,
    );
    const json = await chat('read', 'Lobby', '--last', '1', '--json', '--profile', 'a');
    expect(JSON.parse(json.stdout)).toMatchObject({ text: 'a\nb', sender: { nick: 'bob' } });
  });

  test('reads as many messages as are asked for, over several pages, and marks them as read', async () => {
    for (let i = 0; i < 250; i += 1)
      expect(await postJson(webhook, { text: `many ${i}` })).toMatchObject({ status: 200 });
    const { stdout } = await chat('read', 'Lobby', '--last', '240', '--keep-unread', '--profile', 'b');
    expect(
      stdout
        .split('\n')
        .map((line) => line.split(': ')[1])
        .slice(0, -1),
    ).toEqual(Array.from({ length: 240 }, (_, i) => `many ${i + 10}`));
    const unread = async (): Promise<number> =>
      (JSON.parse((await chat('list', '--json', '--profile', 'b')).stdout) as { unread: number }).unread;
    expect(await unread()).toBeGreaterThanOrEqual(250);
    await chat('read', 'Lobby', '--profile', 'b');
    expect(await unread()).toBe(0);
  });

  test('prints everything to a reader that takes its time, however much there is', async () => {
    const text = 'long '.repeat(8_000);
    for (let i = 0; i < 3; i += 1) expect(await postJson(webhook, { text })).toMatchObject({ status: 200 });
    const read = `"$1" chat read Lobby --last 3 --keep-unread --profile b`;
    // The pipe is full long before the program at its end begins to read.
    const pipeline = ['sh', '-c', `${read} | { dd bs=1 count=1; sleep 1; cat; }`, 'sh', LAUNCHER] as const;
    const { stdout } = await new Program([...pipeline], { env: env() }).ended;
    expect(stdout.match(/long /g)).toHaveLength(3 * 8_000);
  });

  test('opens private conversations, creates groups, invites into them and joins them', async () => {
    const opened = await chat('open', 'bob', '--profile', 'a');
    expect(opened).toMatchObject({ code: 0, stderr: '' });
    await chat('send', '@bob', 'for you alone', '--profile', 'a');
    const { stdout } = await chat('read', '@alice', '--profile', 'b');
    expect(stdout).toMatch(/@alice #1 alice: for you alone\n$/);
    const created = await chat('create', 'Release 2', '--about', 'what is missing', '--profile', 'a');
    expect(created.stdout).toMatch(/^\d+\n$/);
    const invited = await chat('invite', 'Release 2', '--days', '1', '--uses', '1', '--profile', 'a');
    expect(invited.stdout).toMatch(/^http\S+\n$/);
    expect(await chat('join', invited.stdout.trim(), '--profile', 'b')).toMatchObject({
      code: 0,
      stdout: `You are in group ${created.stdout.trim()}: Release 2\n`,
    });
    const list = await chat('list', '--profile', 'b');
    expect(list.stdout).toMatch(/Lobby\n.*@alice\n.*Release 2\n$/);
  });

  test('says in a sentence what it cannot do', async () => {
    const cases = [
      [['read', 'Nowhere'], 1, 'klatch: you are in no conversation Nowhere: `klatch chat list` shows yours\n'],
      [['read', '999'], 1, 'klatch: You are in no conversation 999: look at the list of yours\n'],
      [['send', '@nobody', 'x'], 1, expect.stringContaining('klatch chat open nobody')],
      [['open', 'nobody'], 1, expect.stringMatching(/^klatch: .+\n$/)],
      [['join', 'https://chat.example.org/none'], 1, expect.stringMatching(/^klatch: .+\n$/)],
      [['send', 'Lobby', ''], 1, expect.stringMatching(/^klatch: .+\n$/)],
      [['nosuch'], 64, expect.stringMatching(/^klatch: there is no command chat nosuch\n/)],
      [['folow'], 64, expect.stringContaining('(Did you mean follow?)')],
      [['read', 'Lobby', '--profile', '../x'], 64, expect.stringContaining('A profile is named with')],
    ] as [string[], number, unknown][];
    for (const [args, code, stderr] of cases) {
      const profile = args.includes('--profile')
        ? []
        : args[0] === 'nosuch' || args[0] === 'folow'
          ? []
          : ['--profile', 'a'];
      expect(await chat(...args, ...profile)).toMatchObject({ code, stdout: '', stderr });
    }
  });

  test('takes a terminal without a command, and names the others where there is none', async () => {
    expect(await chat('--profile', 'a')).toMatchObject({
      code: 64,
      stderr: expect.stringContaining('this takes a terminal'),
    });
  });

  test('says where it follows not all, since the account is in too many conversations', async () => {
    await workspace.run(['user', 'create', 'collector']);
    await signIn('collector', 'collector');
    await database.query(
      (sql) => sql`
        with made as (
          insert into conversation (kind, title) select 'group', 'Many ' || n from generate_series(1, 20001) n returning id
        ), heads as (insert into conversation_head (conversation_id) select id from made)
        insert into membership (conversation_id, account_id, role)
        select made.id, account.id, 'member' from made, account where nick = 'collector'`,
    );
    const follower = follow('--profile', 'collector');
    await follower.remark(/(with the highest numbers are left out)/);
    follower.process.kill('SIGINT');
    const { code, stderr } = await follower.ended;
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr:
        'klatch: following 20000 conversations\n' +
        'klatch: this account is in more conversations than can be followed: those with the highest numbers are left out\n',
    });
  });

  test('follows from where the last one stopped, in lines and in JSON, and tells of the end of a session', async () => {
    const first = follow('1', '--profile', 'a');
    // The first `chat follow` shows only messages that arrive while it runs.
    await first.remark(/(following)/);
    await chat('send', '1', 'live', '--profile', 'b');
    await first.text(/(live)/);
    first.process.kill('SIGINT');
    const { code, stderr } = await first.ended;
    expect({ code, stderr }).toEqual({ code: 0, stderr: 'klatch: following 1 conversation\n' });
    await chat('send', '1', 'meanwhile', '--profile', 'b');
    const second = follow('1', '--json', '--profile', 'a');
    await second.text(/(meanwhile)/);
    second.process.kill('SIGTERM');
    const { stdout } = await second.ended;
    const lines = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { conversation: number; message: { text: string } });
    expect(lines.map(({ conversation, message }) => [conversation, message.text])).toEqual([[1, 'meanwhile']]);
  });

  test('says once that the account is out of a group, though that was while it did not follow', async () => {
    await workspace.run(['user', 'create', 'leaver']);
    await signIn('leaver', 'leaver');
    await workspace.run(['group', 'create', 'Left']);
    const group = ['Left', 'leaver'] as const;
    await workspace.run(['group', 'add-member', ...group]);
    const said: string[] = [];
    for (const change of [null, ['group', 'remove-member', ...group], null]) {
      if (change !== null) await workspace.run(change);
      const follower = follow('--profile', 'leaver');
      await follower.remark(/(following)/);
      // This message gives the profile a position (the last shown message) in the group.
      if (said.length === 0) await workspace.run(['send', 'Left', 'hello', '--as', 'leaver']);
      if (said.length === 0) await follower.text(/(hello)/);
      follower.process.kill('SIGINT');
      said.push((await follower.ended).stdout);
    }
    expect(said).toEqual([
      expect.stringContaining('hello'),
      expect.stringMatching(/^You are in conversation \d+ no more\.\n$/),
      '',
    ]);
  });

  test('goes on writing over a server that is started again', async () => {
    running.process.kill('SIGKILL');
    await running.ended;
    expect(await chat('list', '--profile', 'a')).toMatchObject({
      code: 69,
      stderr: expect.stringContaining('cannot be reached'),
    });
    const writing = chat('send', '1', 'patient', '--profile', 'a', '--wait', '60');
    running = (await workspace.serve()).server;
    expect(await writing).toMatchObject({ code: 0, stdout: expect.stringMatching(/^1:\d+\n$/) });
  });
});
