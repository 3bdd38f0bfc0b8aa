import type { Command } from 'commander';
import {
  removeIncomingSecret,
  setIncomingSecret,
  showIncomingSecret,
} from '../../operations/groups/incoming-secret.ts';
import { callAndPrint } from '../core/call.ts';
import type { CommandContext } from '../core/context.ts';
import { readSecretFile } from '../core/secret-file.ts';
import { GROUP_ARGUMENT_HELP, groupOnlyAction } from './group-argument.ts';
import { formatFields } from '../../../client/terminal/table.ts';
import { withExamples, withJson } from '../core/options.ts';

type Secret = Awaited<ReturnType<(typeof showIncomingSecret)['run']>>;
type RemovalResult = Awaited<ReturnType<(typeof removeIncomingSecret)['run']>>;

interface SetOptions {
  readonly secretFile?: string;
  readonly rotate?: boolean;
  readonly signedOnly?: boolean;
  readonly json?: boolean;
}

export function addSecretCommands(group: Command, context: CommandContext): void {
  const secret = group.command('secret').description('the secret with which posts into a group are signed');
  withExamples(secret, ['klatch group secret set Operations', 'klatch group secret show Operations']);
  const showCommand = secret
    .command('show')
    .description('print the secret, and whether posts without a signature are refused')
    .argument('<group>', GROUP_ARGUMENT_HELP)
    .action(groupOnlyAction(context, showIncomingSecret, secretLines));
  withExamples(withJson(showCommand), ['klatch group secret show Operations']);
  addSetCommand(secret, context);
  const removeCommand = secret
    .command('remove')
    .description('remove the secret: signatures are not looked at any more')
    .argument('<group>', GROUP_ARGUMENT_HELP)
    .action(groupOnlyAction(context, removeIncomingSecret, removalLines));
  withExamples(withJson(removeCommand), ['klatch group secret remove Operations']);
}

function addSetCommand(secret: Command, context: CommandContext): void {
  const setCommand = secret
    .command('set')
    .description('demand signatures of posts whose programs can sign; a secret is made where there is none')
    .argument('<group>', GROUP_ARGUMENT_HELP)
    .option('--secret-file <file>', 'a file that holds the secret, where a program made it; - is standard input')
    .option('--rotate', 'make a new secret in the place of the present one')
    .option('--signed-only', 'refuse every post without a signature, also of programs that cannot sign')
    .option('--no-signed-only', 'take posts of programs that cannot sign')
    .action(async (group: string, { secretFile, rotate, signedOnly, json }: SetOptions, self: Command) => {
      const secretFromFile =
        secretFile === undefined ? undefined : await readSecretFile(context, '--secret-file', secretFile);
      const input = { group, secret: secretFromFile, rotate, signed_only: signedOnly };
      return callAndPrint(context, self, { operation: setIncomingSecret, input, json, lines: secretLines });
    });
  withExamples(withJson(setCommand), ['klatch group secret set Operations --signed-only']);
}

function secretLines({ group, secret, signed_only: signedOnly }: Secret): string[] {
  if (secret === null) return [`Group ${group} has no secret: signatures of posts are not looked at.`];
  const unsignedPolicy = signedOnly ? 'refused' : 'taken from programs that cannot sign';
  return formatFields([
    ['group', group],
    ['secret', secret],
    ['unsigned posts', unsignedPolicy],
  ]);
}

function removalLines({ group, changed }: RemovalResult): string[] {
  return [changed ? `Group ${group} has no secret any more.` : `Group ${group} has no secret.`];
}
