import type { Command } from 'commander';
import { createUser } from '../operations/users.ts';
import { print, type CommandContext } from './context.ts';
import { callServer } from './control-client.ts';
import { dataDirOf } from './data-dir.ts';
import { formatFields } from './layout.ts';
import { configFlag, withExamples, withJson } from './options.ts';

interface CreateOptions {
  readonly name?: string;
  readonly admin?: boolean;
  readonly json?: boolean;
}

export function addUser(program: Command, context: CommandContext): void {
  const user = program.command('user').description('manage the accounts of people on the running server');
  withExamples(user, ['klatch user create alice --name "Alice Example"']);
  addCreate(user, context);
}

function addCreate(user: Command, context: CommandContext): void {
  const command = user
    .command('create')
    .description('create an account for a person')
    .argument('<nick>', 'the name in commands and mentions: 1 to 32 letters, digits, dots, dashes or underscores')
    .option('--name <name>', 'the name that people see (default: the nick)')
    .option('--admin', 'make the account an administrator')
    .action(async (nick: string, { name, admin = false, json }: CreateOptions, self: Command) => {
      const dataDir = dataDirOf(context, configFlag(self));
      const created = await callServer({ dataDir, operation: createUser, input: { nick, name, admin } });
      if (json === true) print(context, JSON.stringify(created, null, 2));
      else print(context, ...formatFields(Object.entries(created)));
    });
  withExamples(withJson(command), [
    'klatch user create alice --name "Alice Example"',
    'klatch user create root --admin --json',
  ]);
}
