import { mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import type { Command } from 'commander';
import { describe, expect, test } from '@jest/globals';
import type { CommandContext } from '../../src/cli/core/context.ts';
import { createProgram, runCommandLine } from '../../src/cli/program.ts';
import { readVersion } from '../../src/version.ts';
import { Program, root, runKlatch } from './program.ts';

/** The context for running the command line in this process: a process for each page would take half a minute. */
function contextOf(output: PassThrough, errors: PassThrough): CommandContext {
  return {
    env: {},
    programBinDir: '/nowhere/bin',
    input: process.stdin,
    output,
    errorOutput: errors,
  } as unknown as CommandContext;
}

const program = await createProgram(contextOf(new PassThrough(), new PassThrough()));

function commandsBelow(command: Command, path: readonly string[]): { command: Command; path: readonly string[] }[] {
  const below = command.commands.flatMap((each) => commandsBelow(each, [...path, each.name()]));
  return [{ command, path }, ...below];
}

const commands = commandsBelow(program, []);

/** Runs a command line in this process. Its output has to fit into the buffers of the streams. */
async function run(...args: string[]): Promise<{ code: number; stdout: unknown; stderr: string }> {
  const output = new PassThrough();
  const errors = new PassThrough();
  const code = await runCommandLine(args, contextOf(output, errors));
  return { code, stdout: output.read() as unknown, stderr: String(errors.read() ?? '') };
}

describe('the help', () => {
  test('covers every command of the product', () => {
    const names = commands.map(({ path }) => path.join(' '));
    expect(names).toEqual(
      expect.arrayContaining([
        'serve',
        'setup',
        'config check',
        'config show',
        'migrate',
        'status',
        'ready',
        'doctor',
        'admin-link',
        'user create',
        'user list',
        'group create',
        'group info',
        'group list',
        'group add-member',
        'group remove-member',
        'group archive',
        'group unarchive',
        'group token show',
        'group token rotate',
        'group expect set',
        'group expect list',
        'group expect remove',
        'group secret',
        'group secret show',
        'group secret set',
        'group secret remove',
        'hook list',
        'hook info',
        'hook log',
        'hook pause',
        'hook resume',
        'hook ping',
        'hook redeliver',
        'hook discard-backlog',
        'hook rotate-secret',
        'hook remove',
        'hook restore',
        'send',
        'api list',
        'api describe',
        'chat sign-in',
        'chat sign-out',
        'chat list',
        'chat read',
        'chat send',
        'chat follow',
        'chat talk',
        'chat open',
        'chat join',
        'chat create',
        'chat invite',
        'chat app-password',
        'completion',
        'keys generate',
        'keys list',
        'keys rotate-secret',
      ]),
    );
  });

  test.each(commands)(
    'of "klatch $path" says what it does, explains each option and shows an example',
    async (each) => {
      const { command, path } = each;
      expect(command.description()).toMatch(/^[A-Za-z].{10,}$/);
      for (const option of command.options) expect([option.flags, option.description]).not.toContain('');
      for (const argument of command.registeredArguments) expect(argument.description).not.toBe('');
      const output = new PassThrough();
      const errors = new PassThrough();
      const code = await runCommandLine([...path, '--help'], contextOf(output, errors));
      expect({ code, errors: errors.read() as unknown }).toEqual({ code: 0, errors: null });
      const stdout = String(output.read());
      expect(stdout).toContain(`Usage: klatch ${path.join(' ')}`.trimEnd());
      expect(stdout).toContain('--config <file>');
      expect(stdout).toMatch(/\nExamples?:\n {2}.*klatch /);
    },
  );

  test('goes to standard output of the real program', async () => {
    const { code, stdout, stderr } = await runKlatch(['help', 'setup']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/^Usage: klatch setup /);
  });

  test('is named by what it refuses: an unknown command and an unknown option end with 64', async () => {
    const [command, option, nested, argument] = await Promise.all([
      runKlatch(['fly']),
      runKlatch(['serve', '--fast']),
      runKlatch(['group', 'fly']),
      runKlatch(['user', 'create']),
    ]);
    expect(command).toMatchObject({ code: 64, stdout: '' });
    expect(command.stderr).toMatch(/^klatch: there is no command fly\n.*--help/);
    expect(option).toMatchObject({ code: 64, stderr: expect.stringContaining("unknown option '--fast'") });
    expect(nested).toMatchObject({ code: 64, stderr: expect.stringContaining('there is no command group fly\n') });
    expect(argument).toMatchObject({ code: 64, stderr: expect.stringContaining("missing required argument 'nick'") });
  });

  test('says how a text is given that looks like an option', async () => {
    const { code, stderr } = await runKlatch(['send', '--as', 'bot', 'Lobby', '-5 degrees']);
    expect(code).toBe(64);
    expect(stderr).toContain("unknown option '-5 degrees'\n(If it is no option but a text, put -- in front of it.)\n");
    const other = await runKlatch(['serve', '--fast']);
    expect(other.stderr).not.toContain('-- in front');
  });
});

describe('a command that there is not', () => {
  test.each([
    ['nosuch', 'nosuch'],
    ['nosuch --help', 'nosuch'],
    ['nosuch -h', 'nosuch'],
    ['help nosuch', 'nosuch'],
    ['group nosuch', 'group nosuch'],
    ['group nosuch --help', 'group nosuch'],
    ['group help nosuch', 'group nosuch'],
    ['group token nosuch --help', 'group token nosuch'],
    ['--config /etc/x.conf nosuch --help', 'nosuch'],
  ])('is named and ends with 64: klatch %s', async (line, name) => {
    const { code, stdout, stderr } = await run(...line.split(' '));
    expect({ code, stdout }).toEqual({ code: 64, stdout: null });
    expect(stderr.split('\n')).toEqual([`klatch: there is no command ${name}`, expect.stringMatching(/--help/), '']);
  });

  test.each([
    ['grup', 'group'],
    ['sned --help', 'send'],
    ['help stetus', 'status'],
    ['group lst', 'list'],
    ['group token rotat --help', 'rotate'],
  ])('is answered with the one that is nearly called so: klatch %s', async (line, near) => {
    const { code, stderr } = await run(...line.split(' '));
    expect(code).toBe(64);
    expect(stderr).toContain(`\n(Did you mean ${near}?)\n`);
  });

  test('has nothing to do with the help of those that there are, which ends with 0', async () => {
    for (const line of [['help'], ['help', 'group'], ['group', '--help'], ['group', 'help', 'list'], ['--help']]) {
      expect(await run(...line)).toMatchObject({ code: 0, stderr: '' });
    }
  });
});

test('--version prints the version alone', async () => {
  expect(await runKlatch(['--version'])).toMatchObject({ code: 0, stdout: `${readVersion()}\n` });
});

test('bin/klatch runs from anywhere through a chain of links', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'klatch launcher '));
  try {
    await symlink(join(root, 'bin/klatch'), join(folder, 'absolute'));
    await symlink('absolute', join(folder, 'klatch'));
    const launched = new Program([join(folder, 'klatch'), '--version'], { cwd: '/' });
    expect(await launched.ended).toMatchObject({ code: 0, stdout: `${readVersion()}\n` });
    const path = `${folder}:${process.env['PATH'] ?? ''}`;
    const fromPath = new Program(['/bin/sh', '-c', 'klatch --version'], { cwd: '/', env: { PATH: path } });
    expect(await fromPath.ended).toMatchObject({ code: 0, stdout: `${readVersion()}\n` });
  } finally {
    await rm(folder, { recursive: true });
  }
});
