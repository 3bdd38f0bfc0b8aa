import type { Command } from 'commander';
import { rotateIntegrationToken, showIntegrationToken } from '../../operations/groups/group-token.ts';
import type { CommandContext } from '../core/context.ts';
import { GROUP_ARGUMENT_HELP, groupOnlyAction } from './group-argument.ts';
import { ago, formatFields } from '../../../client/terminal/table.ts';
import { withExamples, withJson } from '../core/options.ts';

type ShownToken = Awaited<ReturnType<(typeof showIntegrationToken)['run']>>;
type Token = Awaited<ReturnType<(typeof rotateIntegrationToken)['run']>>;

export function addTokenCommands(group: Command, context: CommandContext): void {
  const token = group.command('token').description('show or replace the integration token of a group');
  withExamples(token, ['klatch group token show Operations', 'klatch group token rotate Operations']);
  const showCommand = token
    .command('show')
    .description('print the integration token of a group, with which a program posts, and its last use')
    .argument('<group>', GROUP_ARGUMENT_HELP)
    .action(groupOnlyAction(context, showIntegrationToken, shownTokenLines));
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

function shownTokenLines({ last_post_at: lastPostAt, posts_last_day: postsLastDay, ...token }: ShownToken): string[] {
  return [
    ...tokenLines(token),
    ...formatFields([
      ['last post', lastPostAt === null ? 'none' : ago(lastPostAt, Date.now())],
      ['last 24 h', postsLastDay === 1 ? '1 post' : `${postsLastDay} posts`],
    ]),
  ];
}

function tokenLines({ group, token, webhook }: Token): string[] {
  return formatFields([
    ['group', group],
    ['token', token],
    ['webhook', webhook],
  ]);
}
