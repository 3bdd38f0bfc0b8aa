import { InvalidArgumentError, type Command } from 'commander';
import { reactivateUser, deactivateUser, updateUser } from '../operations/accounts/user-changes.ts';
import { createSignInLink } from '../operations/accounts/sign-in-links.ts';
import type { CommandContext } from './core/context.ts';
import { formatFields } from '../../client/terminal/table.ts';
import { withExamples, withJson } from './core/options.ts';
import { callAndPrint } from './core/call.ts';

type UserActivationState = Awaited<ReturnType<(typeof deactivateUser)['run']>>;

interface UserUpdateOptions {
  readonly name?: string;
  readonly admin?: boolean;
  readonly address?: string;
  readonly json?: boolean;
}

/** Adds the subcommands of `klatch user` that change who may sign in, and with which role. */
export function addUserChangeCommands(user: Command, context: CommandContext): void {
  addCreateSignInLink(user, context);
  addUpdate(user, context);
  addDeactivateOrActivate(user, context, {
    verb: 'deactivate',
    operation: deactivateUser,
    description: 'take an account out of use, and the bots that it owns: its sessions end, what it has written stays',
  });
  addDeactivateOrActivate(user, context, {
    verb: 'activate',
    operation: reactivateUser,
    description: 'take an account back into use; its bots are activated by their own nicks',
  });
}

function addCreateSignInLink(user: Command, context: CommandContext): void {
  const command = user
    .command('invite')
    .description('make a link that signs a person in, once and within 24 hours; a new one ends the one before')
    .argument('<nick>', 'the nick of the account')
    .action((nick: string, { json }: { json?: boolean }, self: Command) =>
      callAndPrint(context, self, { operation: createSignInLink, input: { user: nick }, json, lines: signInLinkLines }),
    );
  withExamples(withJson(command), ['klatch user invite alice']);
}

function signInLinkLines({ user, link, expires_at }: Awaited<ReturnType<(typeof createSignInLink)['run']>>): string[] {
  return [link, '', `Whoever opens this link first is signed in as ${user}. It is good once, until ${expires_at}.`];
}

function addUpdate(user: Command, context: CommandContext): void {
  const command = user
    .command('update')
    .description('change the name of an account, what it may do, or the address that it signs in with')
    .argument('<nick>', 'the nick of the account')
    .option('--name <name>', 'the name that people see')
    .option('--admin <yes|no>', 'whether it is an administrator of the installation', yesOrNo)
    .option('--address <address>', 'an e-mail address or telephone number, in the place of the one of its kind')
    .action((nick: string, { name, admin, address, json }: UserUpdateOptions, self: Command) => {
      const lines = (profile: object): string[] => formatFields(Object.entries(profile));
      return callAndPrint(context, self, {
        operation: updateUser,
        input: { user: nick, name, admin, address },
        json,
        lines,
      });
    });
  withExamples(withJson(command), [
    'klatch user update alice --admin yes',
    'klatch user update alice --address alice@example.org',
  ]);
}

function yesOrNo(text: string): boolean {
  if (text === 'yes' || text === 'no') return text === 'yes';
  throw new InvalidArgumentError('Give yes or no.');
}

function addDeactivateOrActivate(
  user: Command,
  context: CommandContext,
  how: { verb: string; description: string; operation: typeof deactivateUser },
): void {
  const { verb, description, operation } = how;
  const command = user
    .command(verb)
    .description(description)
    .argument('<nick>', 'the nick of the account')
    .action((nick: string, { json }: { json?: boolean }, self: Command) =>
      callAndPrint(context, self, { operation, input: { user: nick }, json, lines: userActivationLines }),
    );
  withExamples(withJson(command), [`klatch user ${verb} alice`]);
}

function userActivationLines({ user, deactivated }: UserActivationState): string[] {
  return [`The account ${user} is ${deactivated ? 'deactivated: its sessions and tokens have ended' : 'active'}.`];
}
