import { randomUUID } from 'node:crypto';
import type { Command } from 'commander';
import { ServerError } from '../core/chat-error.ts';
import {
  anything,
  arrayOf,
  integer,
  nullable,
  objectWithAtLeast,
  optional,
  string,
  type Decoded,
} from '../core/decode.ts';
import type { LiveClient } from '../core/live-client.ts';
import { decodeMessage, type Message } from '../core/shapes.ts';
import { withSignedInClient, withServerAndProfile, type ChatOptions } from './chat-client.ts';
import { CONVERSATION_HELP, findConversation } from './chat-directory.ts';
import { discardUploads, prepareUploads, uploadAll } from './chat-files.ts';
import { withJsonLines } from './chat-groups.ts';
import { historyBeginLines, jsonLine, messageLines, conversationName } from './chat-text.ts';
import { print, type ChatContext } from './context.ts';
import { moodPaint } from './mood-colours.ts';
import { ChatCommandError } from './command-error.ts';

const MAX_READ_MESSAGES = 10_000;
const HISTORY_PAGE_SIZE = 200;
const MAX_SEND_WAIT_S = 86_400;
const DEFAULT_SEND_WAIT_S = 30;

const decodeHistoryPage = objectWithAtLeast({
  messages: arrayOf(decodeMessage),
  next: nullable(integer),
  first_seq: optional(integer),
});
const decodeSentMessage = objectWithAtLeast({ id: string });
type SentMessage = Decoded<typeof decodeSentMessage>;

interface ReadOptions extends ChatOptions {
  readonly last: number;
  readonly keepUnread?: boolean;
  readonly json?: boolean;
}

export function addReadMessages(chat: Command, context: ChatContext): void {
  const command = chat
    .command('read')
    .description('print the last messages of a conversation, oldest first, and mark them as read')
    .argument('<conversation>', CONVERSATION_HELP)
    .option(
      '--last <count>',
      `so many messages, up to ${MAX_READ_MESSAGES}`,
      context.wholeNumber(1, MAX_READ_MESSAGES),
      20,
    )
    .option('--keep-unread', 'do not mark them as read')
    .action((conversation: string, options: ReadOptions) => printLastMessages(context, conversation, options));
  context.withExamples(withJsonLines(withServerAndProfile(command), 'message'), [
    'klatch chat read Operations',
    'klatch chat read @bob --last 100 --json',
  ]);
}

async function printLastMessages(context: ChatContext, name: string, options: ReadOptions): Promise<void> {
  const {
    conversation,
    messages,
    firstKeptSeqIfReached: removedBeforeIfReached,
  } = await withSignedInClient(context, options, async (client) => {
    const found = await findConversation(client, name);
    const last = await fetchLastMessages(client, found.id, options.last);
    if (options.keepUnread !== true) await markRead(client, found.id, last.messages.at(-1)?.seq);
    return { conversation: found, ...last };
  });
  const lineContext = { name: conversationName(conversation), now: new Date(), paint: moodPaint(context.output) };
  if (options.json === true) print(context, ...messages.map(jsonLine));
  else
    print(
      context,
      ...historyBeginLines(removedBeforeIfReached),
      ...messages.flatMap((each) => messageLines(each, lineContext)),
    );
}

interface LastMessages {
  /** The messages in the order of their seqs. */
  readonly messages: readonly Message[];
  /** The conversation's first seq if these messages reach it and a retention rule removed earlier ones; else null. */
  readonly firstKeptSeqIfReached: number | null;
}

/** The newest `count` messages, or all if the conversation has fewer. */
export async function fetchLastMessages(
  client: LiveClient,
  conversation: number,
  count: number,
): Promise<LastMessages> {
  const pages: (readonly Message[])[] = [];
  let firstKeptSeqIfReached: number | null = null;
  let beforeSeq: number | null = null;
  for (let remainingCount = count; remainingCount > 0;) {
    const params = {
      conversation,
      limit: Math.min(remainingCount, HISTORY_PAGE_SIZE),
      ...(beforeSeq === null ? {} : { before: beforeSeq }),
    };
    const page: Decoded<typeof decodeHistoryPage> = await client.call('messages.history', params, {
      decode: decodeHistoryPage,
      isRepeatable: true,
    });
    pages.unshift(page.messages);
    remainingCount -= page.messages.length;
    beforeSeq = page.next;
    firstKeptSeqIfReached = beforeSeq === null ? (page.first_seq ?? null) : null;
    if (beforeSeq === null || page.messages.length === 0) break;
  }
  return { messages: pages.flat(), firstKeptSeqIfReached };
}

/** Moves the account's read position to a message; does nothing if `seq` is undefined. */
export async function markRead(client: LiveClient, conversation: number, seq: number | undefined): Promise<void> {
  if (seq === undefined) return;
  await client.call('messages.mark-read', { conversation, seq }, { decode: anything, isRepeatable: true });
}

interface SendMessageOptions extends ChatOptions {
  readonly file?: readonly string[];
  readonly clientId?: string;
  readonly wait: number;
  readonly json?: boolean;
}

export function addSendMessage(chat: Command, context: ChatContext): void {
  const command = chat
    .command('send')
    .description(
      'write a message into a conversation, and print its id; once, also when the connection breaks in between',
    )
    .argument('<conversation>', CONVERSATION_HELP)
    .argument(
      '[text]',
      'the message; "-": read from standard input, without its last line break; not needed with a file',
    )
    .option('--file <path>', 'a file that the message carries; several times for several, in this order', collectValues)
    .option(
      '--client-id <id>',
      'posts it once, however often the command is repeated within 24 hours (default: a new one)',
    )
    .option(
      '--wait <seconds>',
      'how long to try while the server is away',
      context.wholeNumber(1, MAX_SEND_WAIT_S),
      DEFAULT_SEND_WAIT_S,
    )
    .action(async (conversation: string, text: string | undefined, options: SendMessageOptions) => {
      if (text === undefined && options.file === undefined) {
        throw new ChatCommandError('usage', 'give the text of the message, or a --file');
      }
      const body = text === '-' ? await context.readTextFromStdin() : (text ?? '');
      const sent = await uploadAndSend(context, { conversation, text: body }, options);
      print(context, options.json === true ? jsonLine(sent) : sent.id);
    });
  context.withExamples(context.withJson(withServerAndProfile(command)), [
    'klatch chat send Operations "The backup is through"',
    'df -h | klatch chat send Operations - --client-id "disks-$(date +%F)"',
    'klatch chat send @bob "As you asked" --file report.pdf --server https://chat.example.org',
  ]);
}

/** Collects the values of a repeatable option. */
function collectValues(value: string, earlierValues: readonly string[] = []): readonly string[] {
  return [...earlierValues, value];
}

async function uploadAndSend(
  context: ChatContext,
  { conversation, text }: { conversation: string; text: string },
  options: SendMessageOptions,
): Promise<SentMessage> {
  const { clientId, file: paths = [] } = options;
  const waitMs = options.wait * 1_000;
  const uploads = await prepareUploads(context, options, paths);
  return withSignedInClient(context, { ...options, waitMs }, async (client) => {
    // Finds the conversation first, so that an unknown one fails before the upload.
    const { id } = await findConversation(client, conversation);
    const files = uploads === null ? [] : await uploadAll(context, client, uploads);
    try {
      return await sendMessage(client, { conversation: id, text, clientId, files }, waitMs);
    } catch (error) {
      if (error instanceof ServerError && error.code !== 'outcome_unknown') await discardUploads(client, files);
      throw error;
    }
  });
}

/** Posts a message once, over as many connections as necessary. */
export async function sendMessage(
  client: LiveClient,
  message: { conversation: number; text: string; clientId?: string | undefined; files?: readonly string[] },
  timeoutMs: number,
): Promise<SentMessage> {
  const { conversation, text, clientId = randomUUID(), files = [] } = message;
  const params = { conversation, text, client_id: clientId, ...(files.length === 0 ? {} : { files }) };
  return client.call('messages.send', params, { decode: decodeSentMessage, isRepeatable: true, timeoutMs });
}
