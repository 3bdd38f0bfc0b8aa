import type { Command, Help } from 'commander';
import { exitCodeMeanings } from '../src/cli/core/exit-codes.ts';
import { CONFIG_SCHEMA, type SettingKey } from '../src/config/schema.ts';
import { documentedProgram, examplesOf, leavesOf, nameOf } from './command-line-page.ts';
import type { ReferenceDocument } from './reference-document.ts';
import { bold, italic, item, manualPage, prose, roff, section, usage, verbatim } from './roff.ts';

const FILES: readonly (readonly [string, string])[] = [
  ['/etc/klatch/server.conf', 'The configuration, see klatch.conf(5). Examples stand beside it.'],
  ['/etc/default/klatch', 'What the service starts with.'],
  ['/var/lib/klatch', 'The state of the server, and its database where that is embedded.'],
  ['/var/log/klatch/klatch.log', 'Its log where there is no systemd; else it is in the journal of klatch.service.'],
  ['/usr/lib/klatch/postgresql', 'The programs of the private PostgreSQL, if klatch-postgresql is installed.'],
];

const VARIABLES: readonly (readonly [string, string])[] = [
  ['KLATCH_CONFIG', 'The configuration file, where --config does not name it.'],
  ['KLATCH_DB_PASSWORD', 'The password that "klatch setup" writes for the database.'],
  ['NODE_OPTIONS', 'Options of Node.js, see node(1). memory.heap in the configuration is set behind them.'],
];

/**
 * Renders klatch(1) from the program: every command with its arguments, options and examples. `date`: the day of the
 * release, such as `2026-11-21`.
 */
export function renderCommandManual(date: string, program: Command = documentedProgram()): string {
  const help = program.createHelp();
  const commands = leavesOf(program).filter((command) => command !== program);
  return manualPage({ name: 'klatch', section: 1, date }, [
    ...section('NAME', 'klatch \\- group messaging server with durable webhooks'),
    ...section('SYNOPSIS', `${bold('klatch')} [${bold('--config')} ${italic('file')}] [${italic('command')}]`),
    ...section('DESCRIPTION', ...description()),
    ...section('OPTIONS', ...options(help, program)),
    ...section('COMMANDS', ...commands.flatMap((command) => commandLines(help, command))),
    ...section('EXIT STATUS', ...Object.entries(exitCodeMeanings).flatMap(([code, text]) => item(code, prose(text)))),
    ...section('ENVIRONMENT', ...VARIABLES.flatMap(([name, text]) => item(bold(name), prose(text)))),
    ...section('FILES', ...FILES.flatMap(([path, text]) => item(italic(path), prose(text)))),
    ...section('SEE ALSO', `${bold('klatch.conf')}(5)`),
  ]);
}

function description(): string[] {
  return [
    'Without a command it is the server, like',
    `${bold('klatch serve')}.`,
    'The package runs it as a service:',
    ...verbatim(['sudo klatch setup', 'sudo service klatch start', 'sudo service klatch status']),
    '.PP',
    'Commands about users, groups, hooks and messages talk to the running server through a socket in its data',
    'directory, as root or as the user that the server runs as.',
  ];
}

function commandLines(help: Help, command: Command): string[] {
  const text = command.description();
  const rows = help.visibleArguments(command);
  return [
    `.SS ${roff(nameOf(command))}`,
    usage(help.commandUsage(command)),
    '.PP',
    prose(`${text[0]!.toUpperCase()}${text.slice(1)}.`),
    ...rows.flatMap((each) => item(italic(each.name()), prose(help.argumentDescription(each)))),
    ...options(help, command),
    ...verbatim(examplesOf(command)),
  ];
}

function options(help: Help, command: Command): string[] {
  const own = help.visibleOptions(command).filter(({ long }) => command.parent === null || long !== '--help');
  return own.flatMap((option) => item(usage(help.optionTerm(option)), prose(help.optionDescription(option))));
}

/** Renders klatch.conf(5) from reference.conf: every key with its explanation, its value and its default. */
export function renderConfigurationManual(date: string, { head, sections, keys }: ReferenceDocument): string {
  const language = paragraphs(head).at(-1) ?? '';
  return manualPage({ name: 'klatch.conf', section: 5, date }, [
    ...section('NAME', 'klatch.conf \\- configuration of the Klatch messaging server'),
    ...section('SYNOPSIS', italic('/etc/klatch/server.conf')),
    ...section('DESCRIPTION', ...introduction(language)),
    ...section(
      'KEYS',
      ...keys.flatMap((key, index) => [...headOf(key.key, keys[index - 1]?.key, sections), ...keyLines(key)]),
    ),
    ...section('EXAMPLES', 'The least that a server needs:', ...verbatim(LEAST)),
    ...section('SEE ALSO', `${bold('klatch')}(1)`),
  ]);
}

const LEAST = [
  'secret = "<SERVER_SECRET>"',
  'http.base-uri = "https://chat.example.org"',
  'services.postgresql.password = "<DB_PASSWORD>"',
];

function introduction(language: string): string[] {
  return [
    'The server reads',
    italic('server.conf'),
    'when it starts: a change takes effect with the next',
    `${bold('service klatch restart')}.`,
    bold('klatch setup'),
    'completes the file,',
    bold('klatch config check'),
    'names every mistake in it, and',
    bold('klatch config show'),
    'prints what is in force.',
    'A value that stands in angle brackets, such as "<BASE_URI>", is one that is still to be given.',
    '.PP',
    prose(language),
  ];
}

/** The heading and comment of a section before its first key; nothing before other keys. */
function headOf(key: string, before: string | undefined, sections: ReadonlyMap<string, string>): string[] {
  const own = sectionOf(key);
  if (before !== undefined && sectionOf(before) === own) return [];
  const words = sections.get(own) ?? '';
  return [`.SS ${own === '' ? 'General' : roff(own)}`, ...(words === '' ? [] : [prose(words)])];
}

function keyLines({ key, explanation, value, defaultValue }: ReferenceDocument['keys'][number]): string[] {
  const isRequired = CONFIG_SCHEMA[key as SettingKey].presence === 'required';
  const none = isRequired ? 'It has to be set.' : 'Not set by default.';
  const given = defaultValue === null ? none : `Default: ${bold(defaultValue)}.`;
  return item(bold(key), prose(explanation), '.br', prose(`Value: ${value}.`), given);
}

const sectionOf = (key: string): string => key.split('.').slice(0, -1).join('.');

function paragraphs(lines: readonly string[]): string[] {
  return lines
    .join('\n')
    .split('\n\n')
    .map((paragraph) => paragraph.replaceAll('\n', ' '));
}
