import type { Command, Help, Option } from 'commander';
import type { CommandContext } from '../src/cli/core/context.ts';
import { exitCodeMeanings } from '../src/cli/core/exit-codes.ts';
import { createProgram } from '../src/cli/program.ts';
import { plain } from './markdown.ts';

const documented = await createProgram({ env: {}, programBinDir: '' } as unknown as CommandContext);

const INTRODUCTION = `\`klatch\` without a command is \`klatch serve\`. The commands about users, groups, hooks and messages talk to the running
server through the control socket in its data directory: they need its configuration (for \`data-dir\`) and the right to
open the socket, as root or as the user that the server runs as.

- \`--json\` prints the whole answer for scripts; without it, tables and sentences for people.
- Lists come in pages. Where there is more, a table ends with the \`--after\` of the next page; in JSON it is \`next\`, which is null at the end.
- A group is named by its number, or by its title where no other group has the same.
- Errors are sentences on standard error; scripts go by the [exit code](#exit-codes).`;

const COMPLETION = `\`klatch completion bash\` prints a script that completes commands, options, choices and file names in bash 4 or newer.
\`source <(klatch completion bash)\` is for one shell; a package puts its output into
\`/usr/share/bash-completion/completions/klatch\`, where bash finds it for everybody.`;

/** Renders docs/command-line.md from the program: every command with its arguments, options and examples. */
export function renderCommandLine(program: Command = documentedProgram()): string {
  const help = program.createHelp();
  const leaves = leavesOf(program).filter((command) => command !== program);
  return `${[
    '# Command line',
    '<!-- Made by scripts/docs.ts from the program. Do not edit. -->',
    INTRODUCTION,
    table(
      ['Command', 'What it does'],
      leaves.map((command) => [link(command), plain(command.description())]),
    ),
    'For every command:',
    optionTable(help, help.visibleOptions(program)),
    '## Completion',
    COMPLETION,
    '## Commands',
    ...leaves.flatMap((command) => section(help, command)),
    '## Exit codes',
    table(['Code', 'Meaning'], Object.entries(exitCodeMeanings)),
  ].join('\n\n')}\n`;
}

/** The program as the pages describe it. No command of it is run. */
export function documentedProgram(): Command {
  return documented;
}

/** The commands without subcommands: the command itself, or those at any depth below it. */
export function leavesOf(command: Command): Command[] {
  return command.commands.length === 0 ? [command] : command.commands.flatMap(leavesOf);
}

/** The full name, such as `klatch group create`. */
export function nameOf(command: Command): string {
  return command.parent === null ? command.name() : `${nameOf(command.parent)} ${command.name()}`;
}

function link(command: Command): string {
  const name = nameOf(command);
  return `[\`${name}\`](#${name.replaceAll(' ', '-')})`;
}

function section(help: Help, command: Command): string[] {
  const description = plain(command.description());
  const usage = help.commandUsage(command);
  const rows = help.visibleArguments(command).map((each) => [`\`${each.name()}\``, help.argumentDescription(each)]);
  const options = help.visibleOptions(command).filter(({ long }) => long !== '--help');
  return [
    `### ${nameOf(command)}`,
    `${description[0]!.toUpperCase()}${description.slice(1)}.`,
    `Usage: \`${usage}\``,
    ...(rows.length === 0 ? [] : [table(['Argument', 'Meaning'], rows.map(cells))]),
    ...(options.length === 0 ? [] : [optionTable(help, options)]),
    `\`\`\`sh\n${examplesOf(command).join('\n')}\n\`\`\``,
  ];
}

function optionTable(help: Help, options: readonly Option[]): string {
  const rows = options.map((option) => [`\`${help.optionTerm(option)}\``, help.optionDescription(option)]);
  return table(['Option', 'Meaning'], rows.map(cells));
}

const cells = ([term = '', text = '']: readonly string[]): string[] => [term, plain(text)];

function table(heading: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (row: readonly string[]): string => `| ${row.join(' | ')} |`;
  return [line(heading), `|${'---|'.repeat(heading.length)}`, ...rows.map(line)].join('\n');
}

/** The examples at the end of the command's help, read from the printed text: commander does not offer them as data. */
export function examplesOf(command: Command): string[] {
  let text = '';
  command.configureOutput({ writeOut: (part) => (text += part) }).outputHelp();
  const examples = text.slice(text.search(/^Examples?:$/m));
  return [...examples.matchAll(/^ {2}(.+)$/gm)].map((match) => match[1]!);
}
