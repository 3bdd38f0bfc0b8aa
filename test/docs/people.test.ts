import { execFile } from 'node:child_process';
import { cp, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { loadConfig } from '../../src/config/load.ts';
import { Terminal } from '../support/terminal.ts';
import { Program, root, type Ended } from '../cli/program.ts';
import { transcriptOf } from './transcript.ts';

const PAGE = 'docs/first-steps-with-people.md';
const run = promisify(execFile);

/** The folder of a fresh clone, with the parts that the first run needs. */
let folder: string;
let main: string;
const started: Program[] = [];
const terminals: Terminal[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'klatch-people-'));
  main = join(folder, 'src/main.ts');
  for (const name of ['src', 'client', 'packages', 'etc', 'package.json', 'scripts/first-run.ts']) {
    await cp(join(root, name), join(folder, name), { recursive: true });
  }
  await symlink(join(root, 'node_modules'), join(folder, 'node_modules'));
});

afterAll(async () => {
  await Promise.all(terminals.map((terminal) => terminal.stop()));
  for (const { process: wrapper } of started) if (wrapper.exitCode === null) wrapper.kill('SIGTERM');
  await Promise.all(started.map(({ ended }) => ended));
  await rm(folder, { recursive: true, force: true });
});

/** Runs the program of `make run` until the server is ready. Resolves with the webhook that it prints. */
async function makeRun(): Promise<{ run: Program; webhook: string }> {
  const program = new Program([process.execPath, join(folder, 'scripts/first-run.ts')], { cwd: folder });
  started.push(program);
  return {
    run: program,
    webhook: await program.text(/The webhook of the group Lobby:\n {2}(\S+)\n[^]*Stop with Ctrl-C/),
  };
}

const env = (): NodeJS.ProcessEnv => ({
  XDG_CONFIG_HOME: join(folder, 'config'),
  XDG_STATE_HOME: join(folder, 'state'),
});

async function klatch(args: readonly string[], input = ''): Promise<Ended> {
  return new Program([process.execPath, main, ...args], { env: env(), input, cwd: folder }).ended;
}

/** Runs a command of the administrator that the page shows. */
async function administrate(...args: string[]): Promise<string> {
  const { stdout, stderr } = await klatch([...args, '--config', join(folder, 'var/server.conf')]);
  const words = args.map((word) => (word.includes(' ') ? `"${word}"` : word));
  return `$ klatch ${words.join(' ')}\n${stdout}${stderr}`;
}

function openTerminal(...args: string[]): Terminal {
  const terminal = new Terminal([process.execPath, main, 'chat', ...args], { env: env(), cwd: folder });
  terminals.push(terminal);
  return terminal;
}

/** Replaces values that differ from run to run by the examples of the page. */
function normalise(text: string, ports: Readonly<Record<number, string>>): string {
  const examples: readonly (readonly [RegExp, string])[] = [
    ...Object.entries(ports).map(([port, example]) => [new RegExp(`:${port}\\b`, 'g'), `:${example}`] as const),
    [/kll_[A-Za-z0-9_-]{43}/g, 'kll_TOKEN'],
    [/webhooks\/[A-Za-z0-9_-]{20,}/g, 'webhooks/TOKEN'],
    [/^(?:\d{4}-\d\d-\d\d )?\d\d:\d\d (?=\S+ [#*])/gm, '08:00 '],
    [/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '2026-11-21T08:00:00.000Z'],
    [/^-- .*; connecting again in .*$/gm, '-- the connection was cut; connecting again in 1 s'],
    [/kill -9 \d+/g, 'kill -9 4711'],
  ];
  return examples.reduce((result, [found, example]) => result.replaceAll(found, example), text);
}

test('two people, a machine and a server that is killed: nothing is missed or repeated, as the page says', async () => {
  let { run: wrapper, webhook } = await makeRun();
  const { config } = loadConfig(join(folder, 'var/server.conf'), { env: {} });
  const [ws, tcp] = config.endpoints.map(({ port }) => port) as [number, number];
  const expectTranscript = (name: string, text: string): void => {
    const actual = normalise(text, { [config.http.port]: '9090', [ws]: '9080', [tcp]: '9070' });
    expect(actual).toBe(transcriptOf(name, actual, PAGE));
  };
  const curl = async (text: string): Promise<string> => {
    const { stdout } = await run('curl', ['-sS', '-d', text, webhook]);
    return `$ curl -d '${text}' ${webhook}\n${stdout}\n`;
  };

  const accounts = [
    await administrate('user', 'create', 'bob', '--name', 'Bob Example'),
    await administrate('group', 'add-member', 'Lobby', 'bob'),
    await administrate('user', 'invite', 'owner'),
    await administrate('user', 'invite', 'bob'),
  ].join('\n');
  expectTranscript('accounts', accounts);
  // The output of each invitation, after its command.
  const [ownersText, bobsText] = accounts.split(/^\$ klatch user invite .*\n/m).slice(1) as [string, string];

  const httpUrl = `http://127.0.0.1:${config.http.port}`;
  const signIns = [
    { text: ownersText, file: 'owner.txt', args: ['--server', httpUrl, '--link'] },
    { text: bobsText, file: 'bob.txt', args: ['--server', `tcp://127.0.0.1:${tcp}`, '--link', '--profile', 'bob'] },
  ];
  const signedIn: string[] = [];
  for (const { text, file, args } of signIns) {
    const { stdout, stderr } = await klatch(['chat', 'sign-in', ...args], text);
    signedIn.push(`$ klatch chat sign-in ${args.join(' ')} < ${file}\n${stdout}${stderr}`);
  }
  expectTranscript('sign in', signedIn.join('\n'));

  const [owner, bob] = [openTerminal(), openTerminal('--profile', 'bob')];
  const both = async (text: string): Promise<void> => {
    for (const terminal of [owner, bob]) await terminal.shows(text);
  };
  await both('Lobby>');
  owner.type('Good morning\r');
  await both('owner: Good morning');
  bob.type('Hello over tcp\r');
  await both('bob: Hello over tcp');
  const third = [await curl('The backup is through')];
  await both('The backup is through');

  const { pid } = JSON.parse((await klatch(['status', '--json', '--config', config.file])).stdout) as { pid: number };
  process.kill(pid, 'SIGKILL');
  third.push(`$ kill -9 ${pid}\n`);
  await wrapper.ended;
  await both('connecting again');
  bob.type('Is anybody there?\r');
  ({ run: wrapper, webhook } = await makeRun());
  await both('-- connected again');
  await both('bob: Is anybody there?');
  third.push(await curl('Disk full on web-1'));
  await both('Disk full on web-1');
  for (const terminal of [owner, bob]) terminal.type('/quit\r');
  expect(await Promise.all([owner.ended(), bob.ended()])).toEqual([0, 0]);
  expectTranscript('terminal of the owner', `$ klatch chat\n${owner.screen}`);
  expectTranscript('terminal of bob', `$ klatch chat --profile bob\n${bob.screen}`);
  expectTranscript('third terminal', third.join('\n'));

  const written = await klatch(['chat', 'send', 'Lobby', 'Back in five minutes']);
  const follow = new Program([process.execPath, main, 'chat', 'follow', '--profile', 'bob'], {
    env: env(),
    cwd: folder,
  });
  await follow.text(/(Back in five minutes)/);
  follow.process.kill('SIGINT');
  const { stdout, stderr } = await follow.ended;
  const scripts = [
    `$ klatch chat send Lobby "Back in five minutes"\n${written.stdout}${written.stderr}`,
    `$ klatch chat follow --profile bob\n${stderr}${stdout}`,
  ];
  expectTranscript('scripts', scripts.join('\n'));

  await writeFile(join(folder, 'report.pdf'), Buffer.alloc(12_345, '%'));
  const sent = await klatch(['chat', 'send', 'Lobby', 'The report', '--file', 'report.pdf']);
  const read = await klatch(['chat', 'read', 'Lobby', '--last', '1', '--profile', 'bob']);
  const id = /\[report\.pdf .*\] (\S+)$/m.exec(read.stdout)![1]!;
  const options = ['--output', 'copy.pdf', '--profile', 'bob', '--server', httpUrl];
  const saved = await klatch(['chat', 'download', id, ...options]);
  const files = [
    `$ klatch chat send Lobby "The report" --file report.pdf\n${sent.stdout}${sent.stderr}`,
    `$ klatch chat read Lobby --last 1 --profile bob\n${read.stdout}${read.stderr}`,
    `$ klatch chat download ${id} ${options.join(' ')}\n${saved.stdout}${saved.stderr}`,
  ];
  expectTranscript('files', files.join('\n').replaceAll(id, 'FILE'));
});
