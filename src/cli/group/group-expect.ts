import type { Command } from 'commander';
import { formatTable } from '../../../client/terminal/table.ts';
import {
  listGroupExpectations,
  removeGroupExpectation,
  setGroupExpectation,
} from '../../operations/groups/expectations.ts';
import { callAndPrint } from '../core/call.ts';
import type { CommandContext } from '../core/context.ts';
import { withExamples, withJson } from '../core/options.ts';
import { GROUP_ARGUMENT_HELP, groupOnlyAction } from './group-argument.ts';

type SetResult = Awaited<ReturnType<(typeof setGroupExpectation)['run']>>;
type ListResult = Awaited<ReturnType<(typeof listGroupExpectations)['run']>>;
type RemovalResult = Awaited<ReturnType<(typeof removeGroupExpectation)['run']>>;

interface JsonOption {
  readonly json?: boolean;
}

const KEY_HELP = 'the key that the posts have: "key" in their body, or ?key= behind their address';

export function addExpectationCommands(group: Command, context: CommandContext): void {
  const expectCommand = group
    .command('expect')
    .description('tell a group when posts with a key stay away, and when one comes again');
  withExamples(expectCommand, ['klatch group expect set Operations backup 26h', 'klatch group expect list Operations']);
  const setCommand = expectCommand
    .command('set')
    .description('expect a post with a key at least so often')
    .argument('<group>', GROUP_ARGUMENT_HELP)
    .argument('<key>', KEY_HELP)
    .argument('<within>', 'a duration from 1m to 366d, such as 26h; time in which no server took posts does not count')
    .action((groupArgument: string, key: string, within: string, { json }: JsonOption, self: Command) =>
      callAndPrint(context, self, {
        operation: setGroupExpectation,
        input: { group: groupArgument, key, within },
        json,
        lines: setResultLines,
      }),
    );
  withExamples(withJson(setCommand), ['klatch group expect set Operations backup 26h']);
  const listCommand = expectCommand
    .command('list')
    .description('list what a group expects, with the last post of each key')
    .argument('<group>', GROUP_ARGUMENT_HELP)
    .action(groupOnlyAction(context, listGroupExpectations, expectationListLines));
  withExamples(withJson(listCommand), ['klatch group expect list Operations']);
  const removeCommand = expectCommand
    .command('remove')
    .description('expect posts with a key no longer')
    .argument('<group>', GROUP_ARGUMENT_HELP)
    .argument('<key>', KEY_HELP)
    .action((groupArgument: string, key: string, { json }: JsonOption, self: Command) =>
      callAndPrint(context, self, {
        operation: removeGroupExpectation,
        input: { group: groupArgument, key },
        json,
        lines: removedLines,
      }),
    );
  withExamples(withJson(removeCommand), ['klatch group expect remove Operations backup']);
}

/** The lines of a table of a group's expectations; `klatch group info` also shows it. */
export function expectationTable(expectations: ListResult['expectations']): string[] {
  const rows = expectations.map(({ within, last_post_at: lastPostAt, overdue, due_at: dueAt, key }) => [
    within,
    lastPostAt ?? 'never',
    overdue ? 'overdue' : (dueAt ?? '-'),
    key,
  ]);
  return formatTable(['EXPECTED EVERY', 'LAST POST', 'DUE', 'KEY'], rows);
}

function setResultLines({ group, key, within, changed }: SetResult): string[] {
  if (!changed) return [`Group ${group} expects a post with the key ${key} every ${within} already.`];
  return [`Group ${group} now expects a post with the key ${key} every ${within}.`];
}

function expectationListLines({ expectations }: ListResult): string[] {
  if (expectations.length === 0)
    return ['The group expects nothing. `klatch group expect set GROUP KEY 26h` changes that.'];
  return expectationTable(expectations);
}

function removedLines({ group, key }: RemovalResult): string[] {
  return [`Group ${group} expects no post with the key ${key} any longer.`];
}
