import type { Command } from 'commander';
import { transferGroup } from '../../operations/groups/group-roles.ts';
import { editGroup } from '../../operations/groups/groups.ts';
import type { CommandContext } from '../core/context.ts';
import { GROUP_ARGUMENT_HELP } from './group-argument.ts';
import { withExamples, withJson } from '../core/options.ts';
import { callAndPrint } from '../core/call.ts';

type Updated = Awaited<ReturnType<(typeof editGroup)['run']>>;
type Transferred = Awaited<ReturnType<(typeof transferGroup)['run']>>;

interface UpdateOptions {
  readonly title?: string;
  readonly about?: string;
  readonly public?: boolean;
  readonly json?: boolean;
}

export function addUpdate(group: Command, context: CommandContext): void {
  const updateCommand = group
    .command('update')
    .description('rename or describe a group, or say whether anybody may find and join it')
    .argument('<group>', GROUP_ARGUMENT_HELP)
    .option('--title <title>', 'its new name: 1 to 200 characters')
    .option('--about <text>', 'what it is for: up to 2,000 characters; "" for nothing')
    .option('--public', 'let anybody of the installation find and join it')
    .option('--no-public', 'let in only whom somebody adds or invites')
    .action((groupArgument: string, { json, ...changes }: UpdateOptions, self: Command) =>
      callAndPrint(context, self, {
        operation: editGroup,
        input: { group: groupArgument, ...changes },
        json,
        lines: updatedLines,
      }),
    );
  withExamples(withJson(updateCommand), [
    'klatch group update Operations --title "Operations, Berlin"',
    'klatch group update Operations --public',
  ]);
}

function updatedLines({ id, title, changed, public: isPublic }: Updated): string[] {
  if (!changed) return [`Group ${id} is so already.`];
  return [`Group ${id} is called ${title} and is ${isPublic ? 'public' : 'not public'}.`];
}

export function addTransfer(group: Command, context: CommandContext): void {
  const transferCommand = group
    .command('transfer')
    .description('make a member the owner of a group; the owner until now becomes an admin')
    .argument('<group>', GROUP_ARGUMENT_HELP)
    .argument('<user>', 'the nick of the member')
    .action((groupArgument: string, user: string, { json }: { json?: boolean }, self: Command) =>
      callAndPrint(context, self, {
        operation: transferGroup,
        input: { group: groupArgument, user },
        json,
        lines: transferredLines,
      }),
    );
  withExamples(withJson(transferCommand), ['klatch group transfer Operations bob']);
}

function transferredLines({ group, owner, changed }: Transferred): string[] {
  return [
    changed ? `${owner} is the owner of group ${group} now.` : `${owner} is the owner of group ${group} already.`,
  ];
}
