import type { Command } from 'commander';
import { sendMessage } from '../operations/messages.ts';
import type { CommandContext } from './context.ts';
import { exitCodes } from './exit-codes.ts';
import { CommandError } from './failure.ts';
import { GROUP } from './group-argument.ts';
import { withExamples, withJson } from './options.ts';
import { ask } from './result.ts';

interface SendOptions {
  readonly as: string;
  readonly idempotencyKey?: string;
  readonly json?: boolean;
}

/** As much as the webhook takes in one request; what a message may hold is the server's to say. */
const MAX_INPUT_BYTES = 1024 * 1024;

export function addSend(program: Command, context: CommandContext): void {
  const command = program
    .command('send')
    .description('post a message into a group as one of its members, and print its id')
    .argument('<group>', GROUP)
    .argument('[text]', 'the message; "-" or nothing: read from standard input, without its last line break')
    .requiredOption('--as <nick>', 'the member who posts it (required)')
    .option(
      '--idempotency-key <key>',
      'post it once, however often the command is repeated within 24 hours: 1 to 255 visible ASCII characters',
    )
    .action(async (group: string, text: string | undefined, options: SendOptions, self: Command) => {
      const { as, idempotencyKey, json } = options;
      const body = text === undefined || text === '-' ? await readText(context.input) : text;
      const input = { group, as, text: body, idempotency_key: idempotencyKey };
      await ask(context, self, { operation: sendMessage, input, json, lines: ({ id }) => [id] });
    });
  withExamples(withJson(command), [
    'klatch send Operations "The backup is through" --as alice',
    'df -h | klatch send Operations --as alice --idempotency-key "disks-$(date +%F)"',
  ]);
}

async function readText(input: NodeJS.ReadStream): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of input as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > MAX_INPUT_BYTES) {
      throw new CommandError(exitCodes.operationFailed, 'the text on standard input is longer than 1 MiB');
    }
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks)).replace(/\r?\n$/, '');
  } catch (cause) {
    throw new CommandError(exitCodes.operationFailed, 'the text on standard input is not valid UTF-8', { cause });
  }
}
