import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Command } from 'commander';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { bashCompletion } from '../../src/cli/bash-completion.ts';
import type { CommandContext } from '../../src/cli/core/context.ts';
import { createProgram } from '../../src/cli/program.ts';
import { runKlatch } from './program.ts';

const run = promisify(execFile);
const program = await createProgram({ env: {}, programBinDir: '' } as unknown as CommandContext);

let folder: string;
let script: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'klatch-completion-'));
  script = join(folder, 'klatch.bash');
  const { code, stdout, stderr } = await runKlatch(['completion', 'bash']);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  await writeFile(script, stdout);
  const place = join(folder, 'place');
  await mkdir(join(place, 'some folder'), { recursive: true });
  for (const name of ['server.conf', 'some file', 'other']) await writeFile(join(place, name), '');
});
afterAll(() => rm(folder, { recursive: true }));

/** The completions that a real bash offers for these words, of which the last is incomplete. */
async function complete(...words: string[]): Promise<string[]> {
  const lines = [
    'source "$1"; shift',
    'COMP_WORDS=(klatch "$@"); COMP_CWORD=$#',
    '_klatch',
    '((${#COMPREPLY[@]} == 0)) || printf "%s\\n" "${COMPREPLY[@]}"',
  ];
  const args = ['--norc', '--noprofile', '-uc', lines.join('\n'), 'bash', script, ...words];
  const { stdout, stderr } = await run('bash', args, { cwd: join(folder, 'place') });
  expect(stderr).toBe('');
  return stdout.split('\n').filter((line) => line !== '');
}

function commandsBelow(
  command: Command,
  path: readonly string[] = [],
): { command: Command; path: readonly string[] }[] {
  return [{ command, path }, ...command.commands.flatMap((each) => commandsBelow(each, [...path, each.name()]))];
}

describe('the completion of bash', () => {
  test('is registered for klatch', async () => {
    const { stdout } = await run('bash', ['--norc', '-c', `source "${script}"; complete -p klatch`]);
    expect(stdout).toBe('complete -F _klatch klatch\n');
  });

  test.each(commandsBelow(program))(
    'offers the commands and every option of "klatch $path"',
    async ({ command, path }) => {
      const names = command.commands.map((each) => each.name());
      if (names.length > 0) expect(await complete(...path, '')).toEqual([...names, 'help']);
      const options = command.options.filter(({ hidden }) => !hidden).map(({ long }) => long!);
      const offered = await complete(...path, '--');
      expect(offered).toEqual(expect.arrayContaining([...options, '--help', '--config']));
      expect(offered.filter((word) => !options.includes(word)).sort()).toEqual(
        ['--config', '--help', '--version'].filter((word) => !options.includes(word)),
      );
    },
  );

  test('goes by what is typed so far', async () => {
    expect(await complete('s')).toEqual(['serve', 'setup', 'status', 'send']);
    expect(await complete('group', 'a')).toEqual(['add-member', 'archive']);
    expect(await complete('hook', 'list', '--s')).toEqual(['--state']);
    expect(await complete('help', 'g')).toEqual(['group']);
    expect(await complete('nosuch', '')).toEqual([]);
  });

  test('follows the words over options with their values', async () => {
    expect(await complete('--config', 'group', 'group', 'i')).toEqual(['info']);
    expect(await complete('--config', '=', 'group', 'hook', 'i')).toEqual(['info']);
    expect(await complete('group', '--help', 'li')).toEqual(['list']);
    expect(await complete('group', 'create', 'list', '')).toEqual([]);
  });

  test('offers the choices of an option and of an argument', async () => {
    const states = ['active', 'failing', 'parked', 'paused', 'removed'];
    expect(await complete('hook', 'list', '--state', '')).toEqual(states);
    expect(await complete('hook', 'list', '--state', 'pa')).toEqual(['parked', 'paused']);
    // Readline splits `--state=pa` into the words `--state`, `=` and `pa`.
    expect(await complete('hook', 'list', '--state', '=')).toEqual(states);
    expect(await complete('hook', 'list', '--state', '=', 'f')).toEqual(['failing']);
    expect(await complete('group', 'add-member', 'Operations', 'alice', '--role', 'o')).toEqual(['owner']);
    expect(await complete('completion', '')).toEqual(['bash']);
  });

  test('offers nothing for what it cannot know, and no option as a value', async () => {
    expect(await complete('group', 'info', '')).toEqual([]);
    expect(await complete('user', 'list', '--after', '-')).toEqual([]);
    expect(await complete('send', 'Operations', '--', '--')).toEqual([]);
  });

  test('offers files and folders where an option takes a path, with spaces in their names', async () => {
    expect((await complete('--config', '')).sort()).toEqual(['other', 'server.conf', 'some file', 'some folder']);
    expect(await complete('serve', '--config', 'serv')).toEqual(['server.conf']);
    expect(await complete('serve', '--config', '=', 'serv')).toEqual(['server.conf']);
    expect(await complete('setup', '--data-dir', '')).toEqual(['some folder']);
    expect((await complete('setup', '--db-password-file', 'some')).sort()).toEqual(['some file', 'some folder']);
    expect(await complete('setup', '--db-name', '')).toEqual([]);
  });

  test('knows each option that takes a path by the word for its value', () => {
    const paths = commandsBelow(program).flatMap(({ command }) => [
      ...command.options
        .filter(({ long }) => /(?<![a-z])(?:file|config|dir|path|folder)/.test(long ?? ''))
        .map(({ flags }) => flags),
      ...command.registeredArguments
        .filter((each) => /file|path|dir/.test(each.name()))
        .map((each) => `<${each.name()}>`),
    ]);
    expect(paths).toEqual(expect.arrayContaining(['--config <file>', '--data-dir <dir>']));
    expect(paths.filter((flags) => !/[<[](?:file|path|dir|folder)(?:\.\.\.)?[>\]]$/.test(flags))).toEqual([]);
  });

  test('survives a quote in a choice', async () => {
    const own = new Command('own');
    own.addOption(own.createOption('--way <way>', 'which').choices(["it's"]));
    const text = `${bashCompletion(own)}\nCOMP_WORDS=(own --way ''); COMP_CWORD=2; value=; _own_value own --way; echo "$value"`;
    expect((await run('bash', ['--norc', '-c', text])).stdout).toBe("=it's\n");
  });
});
