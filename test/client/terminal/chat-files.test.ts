import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { safeFileName } from '../../../client/terminal/chat-files.ts';
import { formatBytes } from '../../../client/core/format-bytes.ts';
import { callAs } from '../../support/call.ts';
import { createPerson, type TestPerson } from '../../support/people.ts';
import { LAUNCHER } from '../../support/program-files.ts';
import { TestServer } from '../../support/server.ts';
import { Terminal } from '../../support/terminal.ts';
import { Program, type Ended } from '../../cli/program.ts';

const MAX_FILE = 1_000_000;

let server: TestServer;
let folder: string;
let alice: TestPerson;
let bob: TestPerson;
let lobby: number;

beforeAll(async () => {
  server = await TestServer.start({ limits: { fileBytes: MAX_FILE } });
  folder = await mkdtemp(join(tmpdir(), 'klatch-chat-files-'));
  [alice, bob] = [await createPerson(server, 'alice'), await createPerson(server, 'bob')];
  lobby = (await server.createGroup('Lobby')).id;
  await mkdir(join(folder, 'config/klatch'), { recursive: true });
  for (const person of [alice, bob]) {
    await server.operate('groups.add-member', { group: lobby, user: person.nick });
    const account = { id: person.id, nick: person.nick };
    const profile = { version: 1, server: server.liveUrl, token: person.token, sign_in: 'test', account };
    const file = join(folder, `config/klatch/chat-${person.nick}.json`);
    await writeFile(file, JSON.stringify(profile), { mode: 0o600 });
  }
});
afterAll(async () => {
  await server.stop();
  await rm(folder, { recursive: true, force: true });
});

const env = (): NodeJS.ProcessEnv => ({
  XDG_CONFIG_HOME: join(folder, 'config'),
  XDG_STATE_HOME: join(folder, 'state'),
});

function chat(person: TestPerson, ...args: string[]): Promise<Ended> {
  return new Program([LAUNCHER, 'chat', ...args, '--profile', person.nick], { env: env(), cwd: folder }).ended;
}

async function file(name: string, content: string | Buffer): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, content);
  return path;
}

/** The number of files that belong to no message. */
const loose = async (): Promise<number> => {
  const rows = await server.database.query((sql) => sql`select from file where seq is null and state <> 'removed'`);
  return rows.length;
};

describe('klatch chat', () => {
  test('writes a message with files, shows them to the others, and saves one of them', async () => {
    const content = randomBytes(300_000);
    const report = await file('report 1.bin', content);
    const note = await file('note.txt', 'hello');
    const written = await chat(alice, 'send', 'Lobby', 'see there', '--file', report, '--file', note);
    expect(written).toMatchObject({ code: 0, stderr: '', stdout: `${lobby}:1\n` });

    const read = await chat(bob, 'read', 'Lobby');
    const lines = read.stdout.split('\n');
    expect(lines[0]).toMatch(/ Lobby #1 alice: see there$/);
    expect(lines[1]).toMatch(/^ {4}\[report 1\.bin 293 KiB\] [\w-]{22}$/);
    expect(lines[2]).toMatch(/^ {4}\[note\.txt 5 B\] [\w-]{22}$/);

    const id = lines[1]!.split(' ').at(-1)!;
    const saved = await chat(bob, 'download', id, '--output', join(folder, 'copy.bin'));
    expect(saved).toMatchObject({ code: 0, stderr: '' });
    expect(readFileSync(join(folder, 'copy.bin')).equals(content)).toBe(true);
    // A file of that name exists already, and the command overwrites nothing.
    const refused = await chat(bob, 'download', id);
    expect(refused).toMatchObject({ code: 1, stdout: '' });
    expect(refused.stderr).toContain('report 1.bin is there already');
    expect(readFileSync(report).equals(content)).toBe(true);
    for (const [output, why] of [
      ['none/copy.bin', ' cannot be made: there is no folder none; make it, or choose another --output'],
      ['note.txt/copy.bin', ' cannot be made: note.txt is no folder; choose another --output'],
      ['config/', ' names a folder: put the name of a file behind it'],
    ] as const) {
      const stderr = `klatch: ${output}${why}\n`;
      expect(await chat(bob, 'download', id, '--output', output)).toMatchObject({ code: 1, stdout: '', stderr });
    }
    const piped = await chat(bob, 'download', lines[2]!.split(' ').at(-1)!, '--output', '-');
    expect(piped).toMatchObject({ code: 0, stderr: '', stdout: 'hello\n' });
  });

  test('writes a message that is a file and nothing else', async () => {
    const written = await chat(alice, 'send', 'Lobby', '--file', await file('alone.txt', ''), '--json');
    expect(written.code).toBe(0);
    const { messages } = await callAs(server, bob, 'messages.history', { conversation: lobby, limit: 1 });
    expect(messages[0]).toMatchObject({ text: '', attachments: [{ name: 'alone.txt', size: 0 }] });
    const read = await chat(bob, 'read', 'Lobby', '--last', '1');
    expect(read.stdout).toMatch(/ alice:\n {4}\[alone\.txt 0 B\] [\w-]{22}\n$/);
  });

  test('says what is wrong with a file, and leaves nothing on the server where the message is refused', async () => {
    const missing = await chat(alice, 'send', 'Lobby', 'x', '--file', join(folder, 'none'));
    expect(missing).toMatchObject({ code: 64, stdout: '' });
    expect(missing.stderr).toMatch(/--file: .*none cannot be read \(ENOENT\)/);
    expect((await chat(alice, 'send', 'Lobby', 'x', '--file', folder)).stderr).toMatch(/is not a file/);
    const large = await file('large', Buffer.alloc(MAX_FILE + 1));
    const refused = await chat(alice, 'send', 'Lobby', '--file', await file('ok', 'x'), '--file', large);
    expect(refused).toMatchObject({ code: 1, stdout: '' });
    expect(refused.stderr).toContain('limits.file-size');
    const long = await chat(alice, 'send', 'Lobby', 'x'.repeat(40_001), '--file', join(folder, 'ok'));
    expect(long).toMatchObject({ code: 1, stdout: '' });
    expect(await loose()).toBe(0);
    expect((await chat(alice, 'send', 'Lobby')).stderr).toContain('give the text of the message, or a --file');
  });

  test('downloads nothing for who may not, and keeps no half of it', async () => {
    const refused = await chat(alice, 'download', 'x'.repeat(22));
    expect(refused).toMatchObject({ code: 1, stdout: '', stderr: expect.stringMatching(/no such file/) });
    expect(readdirSync(folder)).not.toContain('x'.repeat(22));
  });

  test('asks for an address of HTTP where the session has none', async () => {
    const elsewhere = ['--server', 'tcp://127.0.0.1:1'];
    const ended = await chat(alice, 'download', 'x'.repeat(22), ...elsewhere);
    expect(ended).toMatchObject({ code: 64 });
    expect(ended.stderr).toContain('files go over HTTP');
    expect(ended.stderr).toContain('--server http://… or https://…');
  });

  test('shows on a terminal how far it is, and takes that away', async () => {
    const path = await file('slow.bin', randomBytes(900_000));
    const terminal = new Terminal([LAUNCHER, 'chat', 'send', 'Lobby', '--file', path, '--profile', 'alice'], {
      env: env(),
    });
    try {
      await terminal.shows(new RegExp(`${lobby}:\\d+`));
      expect(await terminal.ended()).toBe(0);
    } finally {
      await terminal.stop();
    }
    expect(terminal.output).toMatch(/slow\.bin: .* of 879 KiB/);
    expect(terminal.screen).not.toContain('slow.bin');
  });
});

test.each([
  ['report.pdf', 'report.pdf'],
  ['../../etc/passwd', 'passwd'],
  ['..\\..\\windows.ini', 'windows.ini'],
  ['.bashrc', 'bashrc'],
  ['-rf', 'rf'],
  ['a\u001b[2Jb\u202etxt', 'a [2Jb\ufffdtxt'],
  ['...', 'ID'],
  ['', 'ID'],
  [null, 'ID'],
  ['é'.repeat(300), 'é'.repeat(100)],
])('a file that is called %j is saved as %j', (name, saved) => {
  expect(safeFileName(name, 'ID')).toBe(saved);
});

test.each([
  [0, '0 B'],
  [1_023, '1023 B'],
  [1_024, '1.0 KiB'],
  [12_345, '12 KiB'],
  [1_048_575, '1.0 MiB'],
  [5.5 * 1024 ** 3, '5.5 GiB'],
])('%d bytes are %s', (bytes, text) => {
  expect(formatBytes(bytes)).toBe(text);
});
