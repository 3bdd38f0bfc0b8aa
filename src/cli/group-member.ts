import { Option, type Command } from 'commander';
import { addMember, removeMember } from '../operations/members.ts';
import { groupRoleSchema } from '../operations/schemas.ts';
import type { CommandContext } from './context.ts';
import { GROUP } from './group-argument.ts';
import { withExamples, withJson } from './options.ts';
import { ask } from './result.ts';

type Member = Awaited<ReturnType<(typeof addMember)['run']>>;

interface AddOptions {
  readonly role?: Member['role'];
  readonly json?: boolean;
}

export function addMembers(group: Command, context: CommandContext): void {
  const add = group
    .command('add-member')
    .description('make an account a member of a group, or give a member another role')
    .argument('<group>', GROUP)
    .argument('<user>', 'the nick of the account')
    .addOption(
      new Option('--role <role>', 'what the member may do (default: member, or the role that the member has)').choices(
        groupRoleSchema.options,
      ),
    )
    .action((name: string, user: string, { role, json }: AddOptions, self: Command) =>
      ask(context, self, { operation: addMember, input: { group: name, user, role }, json, lines: addedLines }),
    );
  withExamples(withJson(add), [
    'klatch group add-member Operations alice',
    'klatch group add-member Operations alice --role admin',
  ]);
  const remove = group
    .command('remove-member')
    .description('end a membership; what the member has written stays')
    .argument('<group>', GROUP)
    .argument('<user>', 'the nick of the account')
    .action((name: string, user: string, { json }: { json?: boolean }, self: Command) => {
      const lines = (left: { group: number; user: string }) => [
        `${left.user} is no member of group ${left.group} now.`,
      ];
      return ask(context, self, { operation: removeMember, input: { group: name, user }, json, lines });
    });
  withExamples(withJson(remove), ['klatch group remove-member Operations alice']);
}

function addedLines({ group, user, role, added }: Member): string[] {
  return [`${user} is ${added ? 'now ' : ''}a member of group ${group} with the role ${role}.`];
}
