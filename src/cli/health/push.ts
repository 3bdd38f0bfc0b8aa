import type { Command } from 'commander';
import { pushStatus } from '../../operations/accounts/push-status.ts';
import { testPushToUser } from '../../operations/accounts/push-test.ts';
import type { CommandContext } from '../core/context.ts';
import { exitCodes } from '../core/exit-codes.ts';
import { CommandError } from '../core/failure.ts';
import { withExamples, withJson, wholeNumber } from '../core/options.ts';
import { pushStatusLines, pushTestLines } from './push-lines.ts';
import { callAndPrint, callPrintReturn } from '../core/call.ts';

const MAX_SHOWN_EVENTS = 100;

export function addPush(program: Command, context: CommandContext): void {
  const push = program.command('push').description('see how devices are told of messages, and try it');
  withExamples(push, ['klatch push status', 'klatch push test alice']);
  addStatus(push, context);
  addTest(push, context);
}

function addStatus(push: Command, context: CommandContext): void {
  const statusCommand = push
    .command('status')
    .description('show how pushes are doing by vendor, and what went wrong last')
    .option(
      '--events <count>',
      `show at most this many events, up to ${MAX_SHOWN_EVENTS}`,
      wholeNumber(0, MAX_SHOWN_EVENTS),
      20,
    )
    .action(({ events, json }: { events: number; json?: boolean }, self: Command) =>
      callAndPrint(context, self, { operation: pushStatus, input: { events }, json, lines: pushStatusLines }),
    );
  withExamples(withJson(statusCommand), ['klatch push status', 'klatch push status --events 0 --json']);
}

function addTest(push: Command, context: CommandContext): void {
  const testCommand = push
    .command('test')
    .description("send a push to each of somebody's devices now, and print the outcome of each")
    .argument('<user>', 'the nick of the account')
    .action(async (user: string, { json }: { json?: boolean }, self: Command) => {
      const result = await callPrintReturn(context, self, {
        operation: testPushToUser,
        input: { user },
        json,
        lines: pushTestLines,
      });
      const { devices } = result;
      const deliveredCount = devices.filter(({ outcome }) => outcome === 'delivered').length;
      if (deliveredCount === devices.length && deliveredCount > 0) return;
      const why =
        devices.length === 0
          ? `${result.user} has no device that is told of messages: that person turns on notifications in a client`
          : `${deliveredCount} of ${devices.length} pushes to ${result.user} were delivered`;
      throw new CommandError(exitCodes.operationFailed, why);
    });
  withExamples(withJson(testCommand), ['klatch push test alice', 'klatch push test alice --json']);
}
