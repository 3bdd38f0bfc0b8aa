import type { Command } from 'commander';
import { rotateIntegrationToken, showIntegrationToken } from '../../operations/groups/group-token.ts';
import type { CommandContext } from '../core/context.ts';
import { GROUP_ARGUMENT_HELP, groupOnlyAction } from './group-argument.ts';
import { formatFields } from '../../../client/terminal/table.ts';
import { withExamples, withJson } from '../core/options.ts';

type Token = Awaited<ReturnType<(typeof showIntegrationToken)['run']>>;

export function addTokenCommands(group: Command, context: CommandContext): void {
  const token = group.command('token').description('show or replace the integration token of a group');
  withExamples(token, ['klatch group token show Operations', 'klatch group token rotate Operations']);
  const showCommand = token
    .command('show')
    .description('print the integration token of a group: whoever has it can post')
    .argument('<group>', GROUP_ARGUMENT_HELP)
    .action(groupOnlyAction(context, showIntegrationToken, tokenLines));
  withExamples(withJson(showCommand), ['klatch group token show Operations']);
  const rotateCommand = token
    .command('rotate')
    .description('replace the integration token of a group; the old URL stops working at once')
    .argument('<group>', GROUP_ARGUMENT_HELP)
    .action(groupOnlyAction(context, rotateIntegrationToken, rotatedLines));
  withExamples(withJson(rotateCommand), ['klatch group token rotate Operations']);
}

function rotatedLines(result: Token): string[] {
  return [
    ...tokenLines(result),
    '',
    'The old URL has stopped working: give the new one to everybody who posts. The reverse webhooks stay.',
  ];
}

function tokenLines({ group, token, webhook }: Token): string[] {
  return formatFields([
    ['group', group],
    ['token', token],
    ['webhook', webhook],
  ]);
}
