import type { Command } from 'commander';
import { archiveGroup, unarchiveGroup } from '../../operations/groups/archive.ts';
import { createGroup, groupInfo, listAllGroups } from '../../operations/groups/groups.ts';
import type { CommandContext } from '../core/context.ts';
import { GROUP_ARGUMENT_HELP, groupOnlyAction } from './group-argument.ts';
import { addExpectationCommands } from './group-expect.ts';
import { addMemberCommands } from './group-member.ts';
import { addSecretCommands } from './group-secret.ts';
import { addTokenCommands } from './group-token.ts';
import { groupInfoLines } from './group-info-lines.ts';
import { addTransfer, addUpdate } from './group-update.ts';
import { formatTable } from '../../../client/terminal/table.ts';
import { withExamples, withJson, withPageOptions, type PageOptions } from '../core/options.ts';
import { callAndPrint, nextPageHint } from '../core/call.ts';

type GroupList = Awaited<ReturnType<(typeof listAllGroups)['run']>>;
type Archive = Awaited<ReturnType<(typeof archiveGroup)['run']>>;

interface CreateOptions {
  readonly about?: string;
  readonly owner?: string;
  readonly public?: true;
  readonly json?: boolean;
}

interface ListOptions extends PageOptions {
  readonly archived?: boolean;
  readonly json?: boolean;
}

export function addGroup(program: Command, context: CommandContext): void {
  const group = program.command('group').description('manage the groups of the running server');
  withExamples(group, ['klatch group create Operations --owner alice', 'klatch group info Operations']);
  addCreate(group, context);
  addInfo(group, context);
  addList(group, context);
  addUpdate(group, context);
  addMemberCommands(group, context);
  addTransfer(group, context);
  addArchive(group, context);
  addUnarchive(group, context);
  addTokenCommands(group, context);
  addExpectationCommands(group, context);
  addSecretCommands(group, context);
}

function addCreate(group: Command, context: CommandContext): void {
  const createCommand = group
    .command('create')
    .description('create a group with its integration token')
    .argument('<title>', 'the name of the group: 1 to 200 characters')
    .option('--about <text>', 'what the group is for: up to 2,000 characters')
    .option('--owner <nick>', 'the account that owns the group (default: nobody)')
    .option('--public', 'let anybody of the installation find and join it')
    .action((title: string, { json, ...options }: CreateOptions, self: Command) =>
      callAndPrint(context, self, {
        operation: createGroup,
        input: { title, ...options },
        json,
        lines: groupInfoLines,
      }),
    );
  withExamples(withJson(createCommand), [
    'klatch group create Operations --about "What happens on our servers" --owner alice',
  ]);
}

function addInfo(group: Command, context: CommandContext): void {
  const infoCommand = group
    .command('info')
    .description(
      'show a group, its webhook URL, its reverse webhooks with their state, posts that it refused, and what it expects',
    )
    .argument('<group>', GROUP_ARGUMENT_HELP)
    .action(groupOnlyAction(context, groupInfo, groupInfoLines));
  withExamples(withJson(infoCommand), ['klatch group info Operations', 'klatch group info 1 --json']);
}

function addList(group: Command, context: CommandContext): void {
  const listCommand = group
    .command('list')
    .description('list the groups by number')
    .option('--archived', 'only those that are archived')
    .option('--no-archived', 'only those that are not archived')
    .action(({ after, limit, archived, json }: ListOptions, self: Command) => {
      const input = { after, limit, archived: archived ?? null };
      return callAndPrint(context, self, { operation: listAllGroups, input, json, lines: groupListLines });
    });
  withExamples(withJson(withPageOptions(listCommand)), [
    'klatch group list',
    'klatch group list --after 500 --limit 500 --json',
  ]);
}

function groupListLines({ groups, next }: GroupList): string[] {
  if (groups.length === 0) return ['There is no such group. `klatch group create TITLE` makes one.'];
  const rows = groups.map(({ id, members, hooks, messages, archived, title }) => [
    id,
    members,
    hooks,
    messages,
    archived ? 'yes' : 'no',
    title,
  ]);
  return [...formatTable(['GROUP', 'MEMBERS', 'HOOKS', 'MESSAGES', 'ARCHIVED', 'TITLE'], rows), ...nextPageHint(next)];
}

function addArchive(group: Command, context: CommandContext): void {
  const archiveCommand = group
    .command('archive')
    .description('close a group: posts are answered 410; what was posted before is still forwarded')
    .argument('<group>', GROUP_ARGUMENT_HELP)
    .action(groupOnlyAction(context, archiveGroup, archiveLines));
  withExamples(withJson(archiveCommand), ['klatch group archive Operations']);
}

function addUnarchive(group: Command, context: CommandContext): void {
  const unarchiveCommand = group
    .command('unarchive')
    .description('open an archived group again, with its token, members and reverse webhooks as they were')
    .argument('<group>', GROUP_ARGUMENT_HELP)
    .action(groupOnlyAction(context, unarchiveGroup, archiveLines));
  withExamples(withJson(unarchiveCommand), ['klatch group unarchive Operations']);
}

function archiveLines({ group, archived, changed }: Archive): string[] {
  if (!changed) return [`Group ${group} is ${archived ? 'archived already' : 'not archived'}.`];
  if (!archived) return [`Group ${group} is open again.`];
  return [`Group ${group} is archived: posts are answered 410 until \`klatch group unarchive ${group}\`.`];
}
