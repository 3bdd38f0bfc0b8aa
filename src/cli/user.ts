import { Option, type Command } from 'commander';
import { installationRoleSchema } from '../operations/core/schemas.ts';
import { createUser, listUsersAndBots } from '../operations/accounts/users.ts';
import type { CommandContext } from './core/context.ts';
import { GROUP_ARGUMENT_HELP } from './group/group-argument.ts';
import { formatFields, formatTable } from '../../client/terminal/table.ts';
import { withExamples, withJson, withLimitOption } from './core/options.ts';
import { callAndPrint, nextPageHint } from './core/call.ts';
import { addUserChangeCommands } from './user-change-commands.ts';

type UserList = Awaited<ReturnType<(typeof listUsersAndBots)['run']>>;

interface CreateOptions {
  readonly name?: string;
  readonly admin?: boolean;
  readonly json?: boolean;
}

interface ListOptions {
  readonly after?: string;
  readonly limit: number;
  readonly role?: UserList['users'][number]['role'];
  readonly group?: string;
  readonly json?: boolean;
}

export function addUser(program: Command, context: CommandContext): void {
  const user = program.command('user').description('manage the accounts of people on the running server');
  withExamples(user, ['klatch user create alice --name "Alice Example"', 'klatch user list']);
  addCreate(user, context);
  addList(user, context);
  addUserChangeCommands(user, context);
}

function addCreate(user: Command, context: CommandContext): void {
  const command = user
    .command('create')
    .description('create an account for a person')
    .argument('<nick>', 'the name in commands and mentions: 1 to 32 letters, digits, dots, dashes or underscores')
    .option('--name <name>', 'the name that people see (default: the nick)')
    .option('--admin', 'make the account an administrator')
    .action((nick: string, { name, admin = false, json }: CreateOptions, self: Command) => {
      const lines = (created: object): string[] => formatFields(Object.entries(created));
      return callAndPrint(context, self, { operation: createUser, input: { nick, name, admin }, json, lines });
    });
  withExamples(withJson(command), [
    'klatch user create alice --name "Alice Example"',
    'klatch user create root --admin --json',
  ]);
}

function addList(user: Command, context: CommandContext): void {
  const command = user
    .command('list')
    .description('list the accounts of people and bots by nick, or the members of a group')
    .option('--group <group>', `the members of this group only: ${GROUP_ARGUMENT_HELP}`)
    .addOption(new Option('--role <role>', 'only accounts with this role').choices(installationRoleSchema.options))
    .option('--after <nick>', 'begin after this nick')
    .action(({ after = '', limit, role, group, json }: ListOptions, self: Command) => {
      const lines = (list: UserList): string[] => listLines(list, group !== undefined);
      return callAndPrint(context, self, {
        operation: listUsersAndBots,
        input: { after, limit, role, group },
        json,
        lines,
      });
    });
  withExamples(withJson(withLimitOption(command)), [
    'klatch user list --role admin',
    'klatch user list --group Operations --json',
  ]);
}

function listLines({ users, next }: UserList, isOfGroup: boolean): string[] {
  if (users.length === 0) return ['There is no such account. `klatch user create NICK` makes one.'];
  const groupColumnHeading = isOfGroup ? 'IN GROUP' : 'GROUPS';
  const rows = users.map(({ id, nick, name, role, groups, group_role, deactivated }) => {
    const status = deactivated ? 'deactivated' : 'active';
    return [id, nick, role, status, isOfGroup ? (group_role ?? '-') : groups, name];
  });
  return [...formatTable(['ID', 'NICK', 'ROLE', 'ACCOUNT', groupColumnHeading, 'NAME'], rows), ...nextPageHint(next)];
}
