import { clearScreenDown, createInterface, cursorTo, moveCursor, type Interface } from 'node:readline';
import { arrayOf, nullable, objectWithAtLeast, string } from '../core/decode.ts';
import type { ChatEvent } from '../core/events.ts';
import type { LiveClient } from '../core/live-client.ts';
import { decodeConversation, type Account, type Conversation } from '../core/shapes.ts';
import { explainChatError } from './chat-client.ts';
import { matchConversation, ConversationNameCache, findConversation, listConversations } from './chat-directory.ts';
import { disconnectedLine, NOT_ALL_FOLLOWED_LINE, conversationRewoundLine } from './chat-follow.ts';
import { joinedLine, decodeJoinedGroup, joinParams, conversationListLines } from './chat-groups.ts';
import { fetchLastMessages, markRead, sendMessage } from './chat-messages.ts';
import { changeLines, conversationName, historyBeginLines, messageLines } from './chat-text.ts';
import { moodPaint, type PaintMood } from './mood-colours.ts';
import { sanitize } from '../core/safe-text.ts';
import { formatTable } from './table.ts';
import { ChatCommandError } from './command-error.ts';

const DEFAULT_SHOWN_MESSAGES = 20;
const MAX_SHOWN_MESSAGES = 200;
/** The number of messages that the screen shows when the person switches to a conversation without unread ones. */
const MIN_MESSAGES_ON_SWITCH = 5;
/**
 * The delay before the client sends a read position. The request also covers the messages that come during the delay.
 */
const READ_RECEIPT_DELAY_MS = 500;
const MAX_PROMPT_NAME_LENGTH = 30;
/** How long the screen tries to send a line while the server is unreachable. */
const SEND_TIMEOUT_MS = 60_000;
/** The maximum number of typed lines that wait until the earlier ones are sent. */
const MAX_QUEUED_LINES = 100;

const decodeMembers = objectWithAtLeast({
  members: arrayOf(objectWithAtLeast({ nick: nullable(string), name: string, role: string })),
});

const COMMAND_HELP: readonly (readonly [string, string])[] = [
  ['/list', 'your conversations, with what is unread'],
  ['/go NAME', 'talk in this conversation from now on: its number, title, or @nick'],
  ['/open NICK', 'talk with somebody in private'],
  ['/join LINK', 'join a group by an invitation, or a public one by its number'],
  ['/read [COUNT]', 'the last messages of this conversation'],
  ['/members', 'who is in this group'],
  ['/help', 'this'],
  ['/quit', 'leave; Ctrl-D does as well'],
];

/** Options of a screen. The client's listener has to pass every event to `onEvent`. */
interface InteractiveChatOptions {
  readonly input: NodeJS.ReadableStream;
  readonly output: NodeJS.WritableStream;
  readonly client: () => LiveClient;
}

/**
 * A conversation on a terminal: it prints new messages above the line that the person is typing, and keeps that line.
 */
export class InteractiveChat {
  /** Resolves when the person ends the chat. */
  readonly userLeft: Promise<void>;
  readonly #options: InteractiveChatOptions;
  readonly #readline: Interface;
  readonly #names: ConversationNameCache;
  readonly #paint: PaintMood;
  #currentConversation: Conversation | null = null;
  /** By conversation, the seq of the last shown message: a message in both the history and the stream is shown once. */
  readonly #lastShownSeqByConversation = new Map<number, number>();
  #mayDrawPrompt = false;
  #isDisconnected = false;
  /** A read position that the client has not sent yet; null: none waits. */
  #unsentReadPosition: { readonly conversation: number; readonly seq: number } | null = null;
  #hasStopped = false;
  #hasTypedQuit = false;
  /** Resolves when all typed lines are handled: one after the other, so that messages keep their order. */
  #lineQueue: Promise<void> = Promise.resolve();
  #queuedLineCount = 0;
  #resolveUserLeft: () => void = () => {};

  constructor(options: InteractiveChatOptions) {
    this.#options = options;
    const { input, output, client } = options;
    this.#names = new ConversationNameCache(client);
    this.#paint = moodPaint(output);
    this.userLeft = new Promise((resolve) => {
      this.#resolveUserLeft = resolve;
    });
    this.#readline = createInterface({ input, output, terminal: true, prompt: '> ' });
    this.#readline.on('line', (line) => this.#enqueueLine(line));
    this.#readline.on('SIGINT', () => this.#resolveUserLeft());
    this.#readline.once('close', () => this.#resolveUserLeft());
  }

  /**
   * Greets the person, and shows `conversation`; if it is null, the only conversation of the account, or else the list
   * of conversations. Rejects with ChatCommandError if `conversation` matches none or several.
   */
  async greetAndShow({ nick }: Account, conversation: string | null): Promise<void> {
    const all = await listConversations(this.#client);
    this.#names.rememberNames(all);
    this.#mayDrawPrompt = true;
    this.#printAboveInput(`You are ${sanitize(nick)}. /help lists what can be typed.`, '');
    const only = all.length === 1 ? all[0]! : null;
    const initialConversation = conversation === null ? only : matchConversation(all, conversation);
    if (initialConversation === null) this.#printAboveInput(...conversationListLines(all));
    else await this.#switchTo(initialConversation, this.#lastShownSeqByConversation.get(initialConversation.id) ?? 0);
    // The person may already be typing: the cursor stays after the typed text.
    this.#redrawPrompt();
  }

  /** Shows an event of the client to the person. The client calls it for one event after the other. */
  async onEvent(event: ChatEvent): Promise<void> {
    if (event.type === 'disconnected') this.#onDisconnected(event);
    else if (event.type === 'following') this.#onFollowing(event);
    else if (event.type === 'reset') this.#printAboveInput(`-- ${conversationRewoundLine(event)}`);
    else if (event.type === 'joined')
      this.#printAboveInput(`-- you are in ${await this.#names.findName(event.conversation)} now`);
    else if (event.type === 'left') this.#onLeft(event.conversation);
    else if (event.type === 'change') await this.#onChange(event);
  }

  /** Restores the terminal. Idempotent. */
  stop(): void {
    if (this.#hasStopped) return;
    this.#hasStopped = true;
    this.#readline.close();
    if (!this.#hasTypedQuit) this.#options.output.write('\n');
  }

  get #client(): LiveClient {
    return this.#options.client();
  }

  /** Prints one line per outage, for any number of attempts to connect. */
  #onDisconnected(event: Extract<ChatEvent, { type: 'disconnected' }>): void {
    if (!this.#isDisconnected) this.#printAboveInput(`-- ${disconnectedLine(event)}`);
    this.#isDisconnected = true;
  }

  #onFollowing({ isSubscribedToAll: complete }: Extract<ChatEvent, { type: 'following' }>): void {
    if (this.#isDisconnected) this.#printAboveInput('-- connected again');
    else if (!complete) this.#printAboveInput(`-- ${NOT_ALL_FOLLOWED_LINE}`);
    this.#isDisconnected = false;
  }

  #onLeft(conversation: number): void {
    this.#printAboveInput(
      `-- you are in ${this.#names.cachedName(conversation) ?? `conversation ${conversation}`} no more`,
    );
    if (this.#currentConversation?.id === conversation) this.#setCurrent(null);
  }

  async #onChange({ conversation, change }: Extract<ChatEvent, { type: 'change' }>): Promise<void> {
    const { message, notice } = change;
    if (notice?.kind === 'renamed') this.#names.forgetName(conversation);
    // The history may have shown a new message already; the screen always shows edits and deletions.
    const isNew = message !== undefined && message.edited_at === undefined && message.deleted === undefined;
    if (isNew && message.seq <= (this.#lastShownSeqByConversation.get(conversation) ?? 0)) return;
    const name = await this.#names.findName(conversation);
    this.#printAboveInput(...changeLines(change, { name, now: new Date(), paint: this.#paint }));
    if (message === undefined) return;
    this.#recordShown(conversation, message.seq);
    if (this.#currentConversation?.id === conversation) this.#scheduleMarkRead(message.seq);
  }

  #recordShown(conversation: number, seq: number): void {
    this.#lastShownSeqByConversation.set(
      conversation,
      Math.max(seq, this.#lastShownSeqByConversation.get(conversation) ?? 0),
    );
  }

  /**
   * Marks the messages of the current conversation as read up to `seq`, after a delay: one request covers messages that
   * come together.
   */
  #scheduleMarkRead(seq: number): void {
    const { id: conversation } = this.#currentConversation!;
    if (this.#unsentReadPosition !== null && this.#unsentReadPosition.conversation !== conversation)
      this.#flushReadPosition();
    const isScheduled = this.#unsentReadPosition !== null;
    this.#unsentReadPosition = { conversation, seq };
    if (!isScheduled) setTimeout(() => this.#flushReadPosition(), READ_RECEIPT_DELAY_MS).unref();
  }

  #flushReadPosition(): void {
    const unsentPosition = this.#unsentReadPosition;
    this.#unsentReadPosition = null;
    if (unsentPosition === null || this.#hasStopped) return;
    markRead(this.#client, unsentPosition.conversation, unsentPosition.seq).catch((error: unknown) =>
      this.#printFailure(error),
    );
  }

  #enqueueLine(line: string): void {
    if (line.trim() === '') return this.#redrawPrompt();
    if (this.#queuedLineCount >= MAX_QUEUED_LINES)
      return this.#printAboveInput(`-- ${MAX_QUEUED_LINES} lines are waiting to be sent; this one was not taken`);
    this.#queuedLineCount += 1;
    this.#lineQueue = this.#lineQueue
      .then(() => this.#executeLine(line))
      .catch((error: unknown) => this.#printFailure(error))
      .finally(() => {
        this.#queuedLineCount -= 1;
        this.#redrawPrompt();
      });
  }

  async #executeLine(line: string): Promise<void> {
    const [, word, rest = ''] = /^\/([a-z]+)(?:\s+(.*?))?\s*$/.exec(line) ?? [];
    if (word === undefined) return this.#sendMessage(line.replace(/^\/\//, '/'));
    const commands: Readonly<Record<string, () => Promise<void> | void>> = {
      help: () =>
        this.#printAboveInput(
          ...COMMAND_HELP.map(([what, meaning]) => `${what.padEnd(16)}${meaning}`),
          '',
          'Everything else is sent; a line that begins with / is typed with two of them.',
        ),
      list: async () => this.#printAboveInput(...conversationListLines(await this.#listConversations())),
      go: async () => this.#switchTo(await findConversation(this.#client, rest)),
      open: () => this.#openConversationWith(rest),
      join: () => this.#joinGroup(rest),
      read: () => this.#showLastMessages(Math.min(MAX_SHOWN_MESSAGES, Number(rest) || DEFAULT_SHOWN_MESSAGES)),
      members: () => this.#showMembers(),
      quit: () => this.#handleQuitCommand(),
    };
    if (!Object.hasOwn(commands, word))
      return this.#printAboveInput(`-- there is no /${word}; /help lists what there is`);
    return commands[word]!();
  }

  async #sendMessage(text: string): Promise<void> {
    await sendMessage(this.#client, { conversation: this.#requireCurrent().id, text }, SEND_TIMEOUT_MS);
  }

  async #listConversations(): Promise<Conversation[]> {
    const all = await listConversations(this.#client);
    this.#names.rememberNames(all);
    return all;
  }

  async #openConversationWith(nick: string): Promise<void> {
    const params = { user: nick.replace(/^@/, '') };
    await this.#switchTo(
      await this.#client.call('private.open', params, { decode: decodeConversation, isRepeatable: true }),
    );
  }

  async #joinGroup(group: string): Promise<void> {
    const options = { decode: decodeJoinedGroup, isRepeatable: true };
    const joinResult = await this.#client.call('groups.join', joinParams(group), options);
    this.#printAboveInput(`-- ${joinedLine(joinResult)}`);
    await this.#switchTo(await findConversation(this.#client, String(joinResult.group)));
  }

  async #switchTo(conversation: Conversation, afterSeq = 0): Promise<void> {
    this.#names.rememberNames([conversation]);
    this.#setCurrent(conversation);
    await this.#showLastMessages(
      Math.min(DEFAULT_SHOWN_MESSAGES, Math.max(MIN_MESSAGES_ON_SWITCH, conversation.unread)),
      afterSeq,
    );
  }

  /** Shows those of the last `count` messages whose seq is above `afterSeq`. */
  async #showLastMessages(count: number, afterSeq = 0): Promise<void> {
    const current = this.#requireCurrent();
    const last = await fetchLastMessages(this.#client, current.id, count);
    const messages = last.messages.filter(({ seq }) => seq > afterSeq);
    const lineContext = { name: conversationName(current), now: new Date(), paint: this.#paint };
    const beginLines = historyBeginLines(last.firstKeptSeqIfReached);
    this.#printAboveInput(...beginLines, ...messages.flatMap((message) => messageLines(message, lineContext)));
    const newest = last.messages.at(-1);
    if (newest === undefined) return;
    this.#recordShown(current.id, newest.seq);
    this.#scheduleMarkRead(newest.seq);
  }

  async #showMembers(): Promise<void> {
    const { members } = await this.#client.call(
      'groups.members',
      { group: this.#requireCurrent().id },
      { decode: decodeMembers },
    );
    this.#printAboveInput(
      ...formatTable(
        ['NICK', 'ROLE', 'NAME'],
        members.map(({ nick, role, name }) => [sanitize(nick ?? ''), role, sanitize(name)]),
      ),
    );
  }

  #handleQuitCommand(): void {
    this.#hasTypedQuit = true;
    this.#resolveUserLeft();
  }

  /** Throws ChatCommandError where no conversation is chosen. */
  #requireCurrent(): Conversation {
    if (this.#currentConversation !== null) return this.#currentConversation;
    throw new ChatCommandError(
      'operationFailed',
      'choose a conversation first: /list shows yours, /go NAME takes you there',
    );
  }

  #setCurrent(conversation: Conversation | null): void {
    this.#currentConversation = conversation;
    this.#readline.setPrompt(
      conversation === null ? '> ' : `${conversationName(conversation).slice(0, MAX_PROMPT_NAME_LENGTH)}> `,
    );
  }

  #printFailure(error: unknown): void {
    const explained = explainChatError(error);
    if (this.#hasStopped) return;
    // Prints unexpected errors too: the person sees that the command failed.
    this.#printAboveInput(`-- ${sanitize(explained instanceof Error ? explained.message : 'it failed')}`);
  }

  /** Prints above the line that the person is typing, which may have wrapped. */
  #printAboveInput(...lines: readonly string[]): void {
    if (this.#hasStopped) return;
    const { output } = this.#options;
    moveCursor(output, 0, -this.#readline.getCursorPos().rows);
    cursorTo(output, 0);
    clearScreenDown(output);
    for (const line of lines) output.write(`${line}\n`);
    this.#redrawPrompt();
  }

  #redrawPrompt(): void {
    if (this.#mayDrawPrompt && !this.#hasStopped && !this.#hasTypedQuit) this.#readline.prompt(true);
  }
}
