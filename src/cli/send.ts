import type { Command } from 'commander';
import { sendMessage } from '../operations/messages/messages.ts';
import type { CommandContext } from './core/context.ts';
import { GROUP_ARGUMENT_HELP } from './group/group-argument.ts';
import { withExamples, withJson } from './core/options.ts';
import { callAndPrint } from './core/call.ts';
import { readText } from './core/text-input.ts';

interface SendOptions {
  readonly as: string;
  readonly idempotencyKey?: string;
  readonly json?: boolean;
}

export function addSend(program: Command, context: CommandContext): void {
  const sendCommand = program
    .command('send')
    .description('post a message into a group as one of its members, and print its id')
    .argument('<group>', GROUP_ARGUMENT_HELP)
    .argument('[text]', 'the message; "-" or nothing: read from standard input, without its last line break')
    .requiredOption('--as <nick>', 'the member who posts it (required)')
    .option(
      '--idempotency-key <key>',
      'post it once, however often the command is repeated within 24 hours: 1 to 255 visible ASCII characters',
    )
    .action(async (group: string, text: string | undefined, options: SendOptions, self: Command) => {
      const { as, idempotencyKey, json } = options;
      const body = text === undefined || text === '-' ? await readText(context.input) : text;
      const input = { conversation: group, as, text: body, client_id: idempotencyKey };
      await callAndPrint(context, self, { operation: sendMessage, input, json, lines: ({ id }) => [id] });
    });
  withExamples(withJson(sendCommand), [
    'klatch send Operations "The backup is through" --as alice',
    'df -h | klatch send Operations --as alice --idempotency-key "disks-$(date +%F)"',
  ]);
}
