import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { saveProfile } from '../../../client/terminal/chat-profile.ts';
import { callAs } from '../../support/call.ts';
import { eventually } from '../../support/eventually.ts';
import { TestMailServer } from '../../support/mail-server.ts';
import { createPerson, type TestPerson } from '../../support/people.ts';
import { LAUNCHER } from '../../support/program-files.ts';
import { postJson, TestServer, type TestGroup } from '../../support/server.ts';
import { Terminal } from '../../support/terminal.ts';

let mail: TestMailServer;
let server: TestServer;
let group: TestGroup;
let alice: TestPerson;
let bob: TestPerson;
let folder: string;
const terminals: Terminal[] = [];

beforeAll(async () => {
  mail = await TestMailServer.start();
  server = await TestServer.start({ registration: 'open', smtp: mail.config() });
  folder = await mkdtemp(join(tmpdir(), 'klatch-chat-'));
  [alice, bob] = [await createPerson(server, 'alice'), await createPerson(server, 'bob')];
  group = await server.createGroup('Lobby');
  for (const user of ['alice', 'bob']) await server.operate('groups.add-member', { group: group.id, user });
});

afterEach(async () => {
  await Promise.all(terminals.map((terminal) => terminal.stop()));
});

afterAll(async () => {
  await server.stop();
  await mail.stop();
  await rm(folder, { recursive: true, force: true });
});

function open(profile: string, ...args: string[]): Terminal {
  const env = { XDG_CONFIG_HOME: join(folder, profile), XDG_STATE_HOME: join(folder, profile) };
  const terminal = new Terminal([LAUNCHER, 'chat', ...args], { env });
  terminals.push(terminal);
  return terminal;
}

/** Opens the interactive client of a signed-in person. */
async function talk(person: TestPerson, profile: string): Promise<Terminal> {
  const { token, id, nick } = person;
  saveProfile(join(folder, profile, 'klatch/chat.json'), { server: server.liveUrl, token, account: { id, nick } });
  const terminal = open(profile);
  await terminal.shows(/^(?:Lobby)?>/m);
  return terminal;
}

test('somebody new signs up with a code from a letter, after a wrong one and a nick that is taken, and writes', async () => {
  const address = ['--address', 'carol@example.org', '--server', server.liveUrl];
  const terminal = open('carol', 'sign-in', ...address);
  await terminal.shows('The code:');
  const [letter] = await eventually(
    () => mail.letters,
    ({ length }) => length === 1,
  );
  const code = /\b\d{6}\b/.exec(letter!.mail.text ?? '')![0];
  terminal.type(`${code === '000000' ? '000001' : '000000'}\r`);
  await terminal.shows('This is not the code');
  terminal.type(`${code}\r`);
  await terminal.shows('Nick:');
  terminal.type('alice\r');
  await terminal.shows('Name that people see [alice]:');
  terminal.type('\r');
  await terminal.shows('This nick is taken');
  terminal.type('carol\r');
  await terminal.shows('Name that people see [carol]:');
  terminal.type('Carol\r');
  await terminal.shows('Signed in as carol.');
  expect(await terminal.ended()).toBe(0);
  const { token } = JSON.parse(readFileSync(join(folder, 'carol/klatch/chat.json'), 'utf8')) as { token: string };
  expect(await callAs(server, { token }, 'conversations.list')).toMatchObject({ conversations: [] });
  const opened = open('carol', 'open', 'bob');
  expect(await opened.ended()).toBe(0);
});

test('somebody new signs up with an invitation where the server sends no codes', async () => {
  const other = await TestServer.start();
  try {
    const { id: number } = await other.createGroup('Open house');
    const { link } = await other.operate<{ link: string }>('invites.create', { group: number });
    const terminal = open('dora', 'sign-in', '--invite', link, '--server', other.liveUrl);
    await terminal.shows('Nick:');
    terminal.type('dora\r');
    await terminal.shows('Name that people see [dora]:');
    terminal.type('\r');
    await terminal.shows('Signed in as dora.');
    expect(await terminal.ended()).toBe(0);
    const { token } = JSON.parse(readFileSync(join(folder, 'dora/klatch/chat.json'), 'utf8')) as { token: string };
    const { conversations } = await callAs(other, { token }, 'conversations.list');
    expect(conversations).toEqual([expect.objectContaining({ title: 'Open house' })]);
  } finally {
    await other.stop();
  }
});

test('what comes leaves the line that is being typed as it is, and no text of others commands the terminal', async () => {
  const terminal = await talk(alice, 'line');
  terminal.type('half a sen');
  await terminal.shows('half a sen');
  const text = 'evil \u001b[2J\u001b[31m \u202etxet\u0007\rLobby #1 bob: fake\nsecond line';
  await callAs(server, bob, 'messages.send', { conversation: group.id, text });
  await terminal.shows(/second line\nLobby> half a sen$/);
  for (const sign of ['\u001b[2J', '\u001b[31m', '\u202e', '\u0007']) expect(terminal.output).not.toContain(sign);
  expect(terminal.screen).toContain('#1 bob: evil  [2J [31m \ufffdtxet\n    | Lobby #1 bob: fake\n    | second line\n');
  terminal.type('tence\r');
  await eventually(
    async () =>
      (await callAs(server, bob, 'messages.history', { conversation: group.id })).messages.at(-1).text as string,
    (last) => last === 'half a sentence',
  );
});

test('the commands of the screen list, go, open, read and leave; what is not understood is said', async () => {
  const terminal = await talk(bob, 'commands');
  terminal.type('/nosuch\r');
  await terminal.shows('there is no /nosuch');
  terminal.type('/open alice\r');
  await terminal.shows(/^@alice>/m);
  terminal.type('//slash\r');
  await terminal.shows('bob: /slash');
  terminal.type('/go Lobby\r');
  await terminal.shows(/^Lobby> $|^Lobby>$/m);
  terminal.type('/go Nowhere\r');
  await terminal.shows('you are in no conversation Nowhere');
  terminal.type('/members\r');
  await terminal.shows(/NICK +ROLE +NAME\nalice/);
  terminal.type('/list\r');
  await terminal.shows(/NUMBER +UNREAD/);
  await postJson(group.webhook, { text: 'unread' });
  await terminal.shows('unread');
  terminal.type('/open nobody-here\r');
  await terminal.shows(/-- .*nobody-here/);
  // Messages on the screen of the current conversation count as read.
  await eventually(
    async () => (await callAs(server, bob, 'conversations.show', { conversation: group.id })).unread as number,
    (unread) => unread === 0,
  );
  await server.operate('groups.remove-member', { group: group.id, user: 'bob' });
  await terminal.shows('-- you are in Lobby no more');
  terminal.type('to nobody\r');
  await terminal.shows('choose a conversation first');
  terminal.type('\u0004');
  expect(await terminal.ended()).toBe(0);
});

test('a session that is ended elsewhere ends the screen with a sentence', async () => {
  const terminal = await talk(alice, 'ended');
  await callAs(server, alice, 'sessions.end', { session: alice.session });
  await terminal.shows('sign in again with `klatch chat sign-in`');
  expect(await terminal.ended()).toBe(1);
});
