import { clearScreenDown, createInterface, cursorTo, moveCursor, type Interface } from 'node:readline';
import { arrayOf, nullable, object, string } from '../core/decode.ts';
import type { ChatEvent } from '../core/events.ts';
import type { LiveClient } from '../core/live-client.ts';
import { decodeConversation, type Account, type Conversation } from '../core/shapes.ts';
import { explainChat } from './chat-client.ts';
import { chooseConversation, ConversationNames, findConversation, listConversations } from './chat-directory.ts';
import { disconnectedLine, INCOMPLETE_LINE, resetLine } from './chat-follow.ts';
import { joinedLine, decodeJoinedGroup, joinParams, listLines } from './chat-groups.ts';
import { lastMessages, markRead, send } from './chat-messages.ts';
import { changeLines, messageLines, nameOf } from './chat-text.ts';
import { sanitize } from './safe-text.ts';
import { formatTable } from './table.ts';
import { ChatCommandError } from './command-error.ts';

const READ = 20;
const MAX_READ = 200;
/** Messages that are shown where one comes into a conversation without unread ones. */
const CONTEXT = 5;
/** A message that is read is told so long after it came, with those that came meanwhile. */
const TELL_MS = 500;
const MAX_PROMPT = 30;
/** How long a line is tried to be sent while the server is away. */
const SEND_MS = 60_000;
/** Lines that wait until those before them are sent. */
const MAX_TYPED = 100;

const decodeMembers = object({ members: arrayOf(object({ nick: nullable(string), name: string, role: string })) });

const HELP: readonly (readonly [string, string])[] = [
  ['/list', 'your conversations, with what is unread'],
  ['/go NAME', 'talk in this conversation from now on: its number, title, or @nick'],
  ['/open NICK', 'talk with somebody in private'],
  ['/join LINK', 'join a group by an invitation, or a public one by its number'],
  ['/read [COUNT]', 'the last messages of this conversation'],
  ['/members', 'who is in this group'],
  ['/help', 'this'],
  ['/quit', 'leave; Ctrl-D does as well'],
];

/** What a screen works with. The client's listener has to hand everything to `hear`. */
interface InteractiveChatOptions {
  readonly input: NodeJS.ReadableStream;
  readonly output: NodeJS.WritableStream;
  readonly client: () => LiveClient;
}

/** A conversation on a terminal: what comes is printed above the line that is being typed, which stays as it is. */
export class InteractiveChat {
  /** Resolves when the person leaves. */
  readonly left: Promise<void>;
  readonly #options: InteractiveChatOptions;
  readonly #lines: Interface;
  readonly #names: ConversationNames;
  #current: Conversation | null = null;
  /** The last message of each conversation that was shown, since history and stream overlap. */
  readonly #shown = new Map<number, number>();
  #hasBegun = false;
  #isAway = false;
  /** A read position that the server does not know yet. */
  #toTell: { readonly conversation: number; readonly seq: number } | null = null;
  #hasStopped = false;
  #isLeaving = false;
  /** What was typed is done one after the other, so that messages keep their order. */
  #work: Promise<void> = Promise.resolve();
  #typed = 0;
  #leave: () => void = () => {};

  constructor(options: InteractiveChatOptions) {
    this.#options = options;
    const { input, output, client } = options;
    this.#names = new ConversationNames(client);
    this.left = new Promise((resolve) => {
      this.#leave = resolve;
    });
    this.#lines = createInterface({ input, output, terminal: true, prompt: '> ' });
    this.#lines.on('line', (line) => this.#take(line));
    this.#lines.on('SIGINT', () => this.#leave());
    this.#lines.once('close', () => this.#leave());
  }

  /** Greets, and shows the conversation to begin in or the list of them. Rejects with ChatCommandError for one there is not. */
  async begin({ nick }: Account, conversation: string | null): Promise<void> {
    const all = await listConversations(this.#client);
    this.#names.learn(all);
    this.#hasBegun = true;
    this.#show(`You are ${sanitize(nick)}. /help lists what can be typed.`, '');
    const only = all.length === 1 ? all[0]! : null;
    const first = conversation === null ? only : chooseConversation(all, conversation);
    if (first === null) this.#show(...listLines(all));
    else await this.#go(first, this.#shown.get(first.id) ?? 0);
    // Somebody may be typing already: the cursor stays behind that.
    this.#prompt();
  }

  /** The listener of the client. */
  async hear(event: ChatEvent): Promise<void> {
    if (event.type === 'disconnected') this.#hearCut(event);
    else if (event.type === 'following') this.#hearBack(event);
    else if (event.type === 'reset') this.#show(`-- ${resetLine(event)}`);
    else if (event.type === 'joined') this.#show(`-- you are in ${await this.#names.find(event.conversation)} now`);
    else if (event.type === 'left') this.#hearLeft(event.conversation);
    else if (event.type === 'change') await this.#hearChange(event);
  }

  /** Gives the terminal back. Idempotent. */
  stop(): void {
    if (this.#hasStopped) return;
    this.#hasStopped = true;
    this.#lines.close();
    if (!this.#isLeaving) this.#options.output.write('\n');
  }

  get #client(): LiveClient {
    return this.#options.client();
  }

  /** Once for an outage, however many attempts it takes. */
  #hearCut(event: Extract<ChatEvent, { type: 'disconnected' }>): void {
    if (!this.#isAway) this.#show(`-- ${disconnectedLine(event)}`);
    this.#isAway = true;
  }

  #hearBack({ complete }: Extract<ChatEvent, { type: 'following' }>): void {
    if (this.#isAway) this.#show('-- connected again');
    else if (!complete) this.#show(`-- ${INCOMPLETE_LINE}`);
    this.#isAway = false;
  }

  #hearLeft(conversation: number): void {
    this.#show(`-- you are in ${this.#names.known(conversation) ?? `conversation ${conversation}`} no more`);
    if (this.#current?.id === conversation) this.#setCurrent(null);
  }

  async #hearChange({ conversation, change }: Extract<ChatEvent, { type: 'change' }>): Promise<void> {
    const { message, notice } = change;
    if (notice?.kind === 'renamed') this.#names.forget(conversation);
    // What is new and was shown with the history; edits and deletions are shown always.
    const isNew = message !== undefined && message.edited_at === undefined && message.deleted === undefined;
    if (isNew && message.seq <= (this.#shown.get(conversation) ?? 0)) return;
    const name = await this.#names.find(conversation);
    this.#show(...changeLines(change, { name, now: new Date() }));
    if (message === undefined) return;
    this.#count(conversation, message.seq);
    if (this.#current?.id === conversation) this.#seen(message.seq);
  }

  #count(conversation: number, seq: number): void {
    this.#shown.set(conversation, Math.max(seq, this.#shown.get(conversation) ?? 0));
  }

  /** What stands in the conversation that one is in has been read: told once for what comes at once. */
  #seen(seq: number): void {
    const { id: conversation } = this.#current!;
    if (this.#toTell !== null && this.#toTell.conversation !== conversation) this.#tell();
    const isTold = this.#toTell !== null;
    this.#toTell = { conversation, seq };
    if (!isTold) setTimeout(() => this.#tell(), TELL_MS).unref();
  }

  #tell(): void {
    const told = this.#toTell;
    this.#toTell = null;
    if (told === null || this.#hasStopped) return;
    markRead(this.#client, told.conversation, told.seq).catch((error: unknown) => this.#fail(error));
  }

  #take(line: string): void {
    if (line.trim() === '') return this.#prompt();
    if (this.#typed >= MAX_TYPED)
      return this.#show(`-- ${MAX_TYPED} lines are waiting to be sent; this one was not taken`);
    this.#typed += 1;
    this.#work = this.#work
      .then(() => this.#do(line))
      .catch((error: unknown) => this.#fail(error))
      .finally(() => {
        this.#typed -= 1;
        this.#prompt();
      });
  }

  async #do(line: string): Promise<void> {
    const [, word, rest = ''] = /^\/([a-z]+)(?:\s+(.*?))?\s*$/.exec(line) ?? [];
    if (word === undefined) return this.#send(line.replace(/^\/\//, '/'));
    const commands: Readonly<Record<string, () => Promise<void> | void>> = {
      help: () =>
        this.#show(
          ...HELP.map(([what, meaning]) => `${what.padEnd(16)}${meaning}`),
          '',
          'Everything else is sent; a line that begins with / is typed with two of them.',
        ),
      list: async () => this.#show(...listLines(await this.#list())),
      go: async () => this.#go(await findConversation(this.#client, rest)),
      open: () => this.#open(rest),
      join: () => this.#join(rest),
      read: () => this.#read(Math.min(MAX_READ, Number(rest) || READ)),
      members: () => this.#members(),
      quit: () => this.#quit(),
    };
    if (!Object.hasOwn(commands, word)) return this.#show(`-- there is no /${word}; /help lists what there is`);
    return commands[word]!();
  }

  async #send(text: string): Promise<void> {
    await send(this.#client, { conversation: this.#here().id, text }, SEND_MS);
  }

  async #list(): Promise<Conversation[]> {
    const all = await listConversations(this.#client);
    this.#names.learn(all);
    return all;
  }

  async #open(nick: string): Promise<void> {
    const params = { user: nick.replace(/^@/, '') };
    await this.#go(await this.#client.call('private.open', params, { decode: decodeConversation, isRepeatable: true }));
  }

  async #join(group: string): Promise<void> {
    const options = { decode: decodeJoinedGroup, isRepeatable: true };
    const joined = await this.#client.call('groups.join', joinParams(group), options);
    this.#show(`-- ${joinedLine(joined)}`);
    await this.#go(await findConversation(this.#client, String(joined.group)));
  }

  async #go(conversation: Conversation, behind = 0): Promise<void> {
    this.#names.learn([conversation]);
    this.#setCurrent(conversation);
    await this.#read(Math.min(READ, Math.max(CONTEXT, conversation.unread)), behind);
  }

  /** The last messages, those alone that are behind a seq. */
  async #read(count: number, behind = 0): Promise<void> {
    const here = this.#here();
    const last = await lastMessages(this.#client, here.id, count);
    const messages = last.filter(({ seq }) => seq > behind);
    const place = { name: nameOf(here), now: new Date() };
    this.#show(...messages.flatMap((message) => messageLines(message, place)));
    const newest = last.at(-1);
    if (newest === undefined) return;
    this.#count(here.id, newest.seq);
    this.#seen(newest.seq);
  }

  async #members(): Promise<void> {
    const { members } = await this.#client.call(
      'groups.members',
      { group: this.#here().id },
      { decode: decodeMembers },
    );
    this.#show(
      ...formatTable(
        ['NICK', 'ROLE', 'NAME'],
        members.map(({ nick, role, name }) => [sanitize(nick ?? ''), role, sanitize(name)]),
      ),
    );
  }

  #quit(): void {
    this.#isLeaving = true;
    this.#leave();
  }

  /** Throws ChatCommandError where one is in none yet. */
  #here(): Conversation {
    if (this.#current !== null) return this.#current;
    throw new ChatCommandError(
      'operationFailed',
      'choose a conversation first: /list shows yours, /go NAME takes you there',
    );
  }

  #setCurrent(conversation: Conversation | null): void {
    this.#current = conversation;
    this.#lines.setPrompt(conversation === null ? '> ' : `${nameOf(conversation).slice(0, MAX_PROMPT)}> `);
  }

  #fail(error: unknown): void {
    const known = explainChat(error);
    if (this.#hasStopped) return;
    // What nobody expected is shown as well: the person sees that it was not done.
    this.#show(`-- ${sanitize(known instanceof Error ? known.message : 'it failed')}`);
  }

  /** Above the line that is being typed, which may have wrapped. */
  #show(...lines: readonly string[]): void {
    if (this.#hasStopped) return;
    const { output } = this.#options;
    moveCursor(output, 0, -this.#lines.getCursorPos().rows);
    cursorTo(output, 0);
    clearScreenDown(output);
    for (const line of lines) output.write(`${line}\n`);
    this.#prompt();
  }

  #prompt(): void {
    if (this.#hasBegun && !this.#hasStopped && !this.#isLeaving) this.#lines.prompt(true);
  }
}
