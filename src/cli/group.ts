import type { Command } from 'commander';
import { createGroup, groupInfo, listAllGroups, rotateToken, showToken } from '../operations/groups.ts';
import type { Operation } from '../operations/operation.ts';
import { print, type CommandContext } from './context.ts';
import { callServer } from './control-client.ts';
import { dataDirOf } from './data-dir.ts';
import { formatFields, formatTable } from './layout.ts';
import { configFlag, withExamples, withJson } from './options.ts';

type GroupInfo = Awaited<ReturnType<(typeof groupInfo)['run']>>;
type GroupRow = Awaited<ReturnType<(typeof listAllGroups)['run']>>[number];
type Token = Awaited<ReturnType<(typeof showToken)['run']>>;

interface CreateOptions {
  readonly about?: string;
  readonly owner?: string;
  readonly json?: boolean;
}

/** Groups of one answer of the server. */
const LIST_PAGE = 500;
const GROUP = 'the number of a group, or its title where no other group has the same';

export function addGroup(program: Command, context: CommandContext): void {
  const group = program.command('group').description('manage the groups of the running server');
  withExamples(group, ['klatch group create Operations --owner alice', 'klatch group info Operations']);
  addCreate(group, context);
  addInfo(group, context);
  addList(group, context);
  const token = group.command('token').description('show or replace the integration token of a group');
  withExamples(token, ['klatch group token show Operations', 'klatch group token rotate Operations']);
  addTokenShow(token, context);
  addTokenRotate(token, context);
}

function addCreate(group: Command, context: CommandContext): void {
  const command = group
    .command('create')
    .description('create a group with its integration token')
    .argument('<title>', 'the name of the group: 1 to 200 characters')
    .option('--about <text>', 'what the group is for: up to 2,000 characters')
    .option('--owner <nick>', 'the account that owns the group (default: nobody)')
    .action(async (title: string, { about, owner, json }: CreateOptions, self: Command) => {
      const call = { operation: createGroup, input: { title, about, owner } };
      show(context, await callServer({ dataDir: dataDirOf(context, configFlag(self)), ...call }), {
        json,
        lines: info,
      });
    });
  withExamples(withJson(command), [
    'klatch group create Operations --about "What happens on our servers" --owner alice',
  ]);
}

function addInfo(group: Command, context: CommandContext): void {
  const command = group
    .command('info')
    .description('show a group, its webhook URL, and its reverse webhooks with their state')
    .argument('<group>', GROUP)
    .action(onGroup(context, groupInfo, info));
  withExamples(withJson(command), ['klatch group info Operations', 'klatch group info 1 --json']);
}

function addList(group: Command, context: CommandContext): void {
  const command = group
    .command('list')
    .description('list the groups by number')
    .action(async ({ json }: { json?: boolean }, self: Command) => {
      const dataDir = dataDirOf(context, configFlag(self));
      show(context, await everyGroup(dataDir), { json, lines: groupLines });
    });
  withExamples(withJson(command), ['klatch group list', 'klatch group list --json']);
}

/** All pages of the list. */
async function everyGroup(dataDir: string): Promise<GroupRow[]> {
  const groups: GroupRow[] = [];
  for (;;) {
    const after = groups.at(-1)?.id ?? 0;
    const page = await callServer({ dataDir, operation: listAllGroups, input: { after, limit: LIST_PAGE } });
    groups.push(...page);
    if (page.length < LIST_PAGE) return groups;
  }
}

function groupLines(groups: readonly GroupRow[]): string[] {
  if (groups.length === 0) return ['There are no groups yet: create one with `klatch group create TITLE`.'];
  const rows = groups.map(({ id, members, messages, archived, title }) => [
    id,
    members,
    messages,
    archived ? 'yes' : 'no',
    title,
  ]);
  return formatTable(['GROUP', 'MEMBERS', 'MESSAGES', 'ARCHIVED', 'TITLE'], rows);
}

function addTokenShow(token: Command, context: CommandContext): void {
  const command = token
    .command('show')
    .description('print the integration token of a group: whoever has it can post')
    .argument('<group>', GROUP)
    .action(onGroup(context, showToken, tokenLines));
  withExamples(withJson(command), ['klatch group token show Operations']);
}

function addTokenRotate(token: Command, context: CommandContext): void {
  const lines = (result: Token): string[] => [
    ...tokenLines(result),
    '',
    'The old URL has stopped working: give the new one to everybody who posts. The reverse webhooks stay.',
  ];
  const command = token
    .command('rotate')
    .description('replace the integration token of a group; the old URL stops working at once')
    .argument('<group>', GROUP)
    .action(onGroup(context, rotateToken, lines));
  withExamples(withJson(command), ['klatch group token rotate Operations']);
}

/** The action of a command whose only input is a group. */
function onGroup<Output>(
  context: CommandContext,
  operation: Operation<{ group: string | number }, Output>,
  lines: (result: Output) => string[],
) {
  return async (group: string, { json }: { json?: boolean }, self: Command): Promise<void> => {
    const dataDir = dataDirOf(context, configFlag(self));
    show(context, await callServer({ dataDir, operation, input: { group } }), { json, lines });
  };
}

function show<Output>(
  context: CommandContext,
  result: Output,
  { json, lines }: { json: boolean | undefined; lines: (result: Output) => string[] },
): void {
  print(context, ...(json === true ? [JSON.stringify(result, null, 2)] : lines(result)));
}

function info({ hooks, created_at, ...group }: GroupInfo): string[] {
  const fields = formatFields([
    ['id', group.id],
    ['title', group.title],
    ['about', group.about],
    ['created', created_at],
    ['archived', group.archived ? 'yes' : 'no'],
    ['members', group.members],
    ['messages', group.messages],
    ['webhook', group.webhook],
    ['hooks', hooks.length],
  ]);
  if (hooks.length === 0) return fields;
  const rows = hooks.map(({ id, state, pending, url }) => [id, state, pending, url]);
  return [...fields, '', ...formatTable(['HOOK', 'STATE', 'PENDING', 'URL'], rows)];
}

function tokenLines({ group, token, webhook }: Token): string[] {
  return formatFields([
    ['group', group],
    ['token', token],
    ['webhook', webhook],
  ]);
}
