import type { Command } from 'commander';
import { integer, nonEmptyString, nullable, objectWithAtLeast, string } from '../core/decode.ts';
import { sanitize } from '../core/safe-text.ts';
import { withServerAndProfile, withSignedInClient, type ChatOptions } from './chat-client.ts';
import { jsonLine } from './chat-text.ts';
import { print, type ChatContext } from './context.ts';

const decodeAppPassword = objectWithAtLeast({ session: integer, token: nonEmptyString, expires_at: nullable(string) });
const MAX_VALIDITY_DAYS = 3_650;
const DAY_S = 86_400;

export function addCreateAppPassword(chat: Command, context: ChatContext): void {
  const command = chat
    .command('app-password')
    .description('create an app password, with which a program acts as you, and print it: the server shows it once')
    .argument('<label>', 'what it is called in your list of sessions: the program that will use it')
    .option(
      '--days <count>',
      'after how many days it ends (default: when you end it)',
      context.wholeNumber(1, MAX_VALIDITY_DAYS),
    )
    .action(async (label: string, { days, json, ...options }: ChatOptions & { days?: number; json?: boolean }) => {
      const params = { label, ...(days === undefined ? {} : { expires_in_s: days * DAY_S }) };
      const created = await withSignedInClient(context, options, (client) =>
        client.call('sessions.create', params, { decode: decodeAppPassword }),
      );
      print(context, json === true ? jsonLine(created) : sanitize(created.token));
    });
  context.withExamples(context.withJson(withServerAndProfile(command)), [
    'klatch chat app-password "nightly report"',
    'klatch chat app-password "laptop" --days 90 | klatch chat sign-in --server https://chat.example.org --token --profile laptop',
  ]);
}
