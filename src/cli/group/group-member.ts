import { Option, type Command } from 'commander';
import { addMember, removeMember } from '../../operations/groups/members.ts';
import { groupRoleSchema } from '../../operations/core/schemas.ts';
import type { CommandContext } from '../core/context.ts';
import { revocationInput, revokedAccessLines, withRevocationFlags, type RevocationFlags } from './revocation-flags.ts';
import { GROUP_ARGUMENT_HELP } from './group-argument.ts';
import { withExamples, withJson } from '../core/options.ts';
import { callAndPrint } from '../core/call.ts';

type Member = Awaited<ReturnType<(typeof addMember)['run']>>;

type RemovalResult = Awaited<ReturnType<(typeof removeMember)['run']>>;

interface AddOptions extends RevocationFlags {
  readonly role?: Member['role'];
  readonly json?: boolean;
}

export function addMemberCommands(group: Command, context: CommandContext): void {
  const addCommand = group
    .command('add-member')
    .description('make an account a member of a group, or give a member another role')
    .argument('<group>', GROUP_ARGUMENT_HELP)
    .argument('<user>', 'the nick of the account')
    .addOption(
      new Option('--role <role>', 'what the member may do (default: member, or the role that the member has)').choices(
        groupRoleSchema.options,
      ),
    )
    .action((groupArgument: string, user: string, { role, json, ...options }: AddOptions, self: Command) =>
      callAndPrint(context, self, {
        operation: addMember,
        input: { group: groupArgument, user, role, ...revocationInput(options) },
        json,
        lines: addedLines,
      }),
    );
  withExamples(withJson(withRevocationFlags(addCommand)), [
    'klatch group add-member Operations alice',
    'klatch group add-member Operations alice --role admin',
    'klatch group add-member Operations alice --role member --rotate-token',
  ]);
  const removeCommand = group
    .command('remove-member')
    .description("end a membership, with those of the member's bots; what they have written stays")
    .argument('<group>', GROUP_ARGUMENT_HELP)
    .argument('<user>', 'the nick of the account')
    .action(
      (
        groupArgument: string,
        user: string,
        { json, ...options }: RevocationFlags & { json?: boolean },
        self: Command,
      ) =>
        callAndPrint(context, self, {
          operation: removeMember,
          input: { group: groupArgument, user, ...revocationInput(options) },
          json,
          lines: removedLines,
        }),
    );
  withExamples(withJson(withRevocationFlags(removeCommand)), [
    'klatch group remove-member Operations alice',
    'klatch group remove-member Operations alice --rotate-token --revoke-invites',
  ]);
}

function addedLines({ group, user, role, added, ...departure }: Member): string[] {
  const line = `${user} is ${added ? 'now ' : ''}a member of group ${group} with the role ${role}.`;
  return [line, ...revokedAccessLines(group, user, departure)];
}

function removedLines({ group, user, ...departure }: RemovalResult): string[] {
  return [`${user} is no member of group ${group} now.`, ...revokedAccessLines(group, user, departure)];
}
