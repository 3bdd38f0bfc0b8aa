import { ConnectionError } from '../../client/core/chat-error.ts';
import {
  arrayOf,
  decodeReceived,
  integer,
  nullable,
  objectWithAtLeast,
  optional,
  string,
  type Decoded,
  type Decoder,
} from '../../client/core/decode.ts';
import {
  decodeConversation,
  decodeMessage,
  decodeNotice,
  type Conversation,
  type Message,
} from '../../client/core/shapes.ts';
import { browserLabel } from './browser-label.ts';
import { decodeSession, sessionIn, type BrowserSession } from './browser-session.ts';
import type { FileLimits, StoredFile, UploadOptions } from './uploads/attachments.ts';
import { serverErrorIn, UNREADABLE_ANSWER } from './server-failure.ts';
import { uploadFile } from './uploads/upload.ts';

const REQUEST_TIMEOUT_MS = 30_000;
const CONVERSATIONS_PER_PAGE = 1_000;
const MAX_FOUND_MESSAGES = 30;
const MAX_FOUND_ACCOUNTS = 8;
/**
 * The maximum number of pages that the page reads of the list of conversations, 1,000 conversations each. By default an
 * account can be in 1,000 conversations (`limits`).
 */
const MAX_CONVERSATION_PAGES = 20;

const decodeConversationPage = objectWithAtLeast({
  conversations: arrayOf(decodeConversation),
  next: nullable(integer),
});

const decodeHistory = objectWithAtLeast({
  messages: arrayOf(decodeMessage),
  next: nullable(integer),
  first_seq: optional(integer),
  notices: optional(arrayOf(decodeNotice)),
});
const decodeReadPosition = objectWithAtLeast({ read_seq: integer });

const decodeSender = objectWithAtLeast({ name: string });
const decodeFoundMessage = objectWithAtLeast({
  conversation: integer,
  seq: integer,
  sender: decodeSender,
  text: string,
  sent_at: string,
});
const decodeFound = objectWithAtLeast({ messages: arrayOf(decodeFoundMessage), next: nullable(string) });
const decodeAccounts = objectWithAtLeast({
  accounts: arrayOf(objectWithAtLeast({ id: integer, nick: string, name: string })),
});
const decodeOpenedConversation = objectWithAtLeast({ id: integer });
const decodeOnline = objectWithAtLeast({ accounts: arrayOf(objectWithAtLeast({ id: integer })) });
const decodeRemoved = objectWithAtLeast({ file: string });
const decodeAbout = objectWithAtLeast({
  files: objectWithAtLeast({ maxBytes: integer }),
  limits: objectWithAtLeast({ attachments: integer }),
});

/** A message that a search found. */
export type FoundMessage = Decoded<typeof decodeFoundMessage>;
/** An account that a search found. */
export type FoundAccount = Decoded<typeof decodeAccounts>['accounts'][number];

/** A page of messages, with the notices between them. */
type History = Decoded<typeof decodeHistory>;

interface NewMessage {
  readonly conversation: number;
  readonly text: string;
  /** Ids of uploaded files. */
  readonly files: readonly string[];
  readonly clientId: string;
}

/** The requests of the page over HTTP; the session is in a cookie that the page cannot read. */
export class Api {
  readonly #base: URL;

  constructor(base: URL) {
    this.#base = base;
  }

  /**
   * The session of this browser, or null. Like all methods of this class, it rejects with ServerError and
   * ConnectionError.
   */
  async currentSession(): Promise<BrowserSession | null> {
    return sessionIn(await this.get('v1/session', decodeSession));
  }

  /**
   * Signs in with the input of `auth.verify` or `auth.sign-up`. Null: the address is proven, but no account has it yet.
   */
  async openSession(proof: object): Promise<BrowserSession | null> {
    const input = { ...proof, label: browserLabel(navigator.userAgent) };
    return sessionIn(await this.#send('POST', 'v1/session', input, decodeSession));
  }

  async signOut(): Promise<void> {
    await this.#send('DELETE', 'v1/session', undefined, decodeSession);
  }

  /** All conversations of the account, in the order of their numbers. */
  async conversations(): Promise<Conversation[]> {
    const all: Conversation[] = [];
    let afterId: number | null = 0;
    for (let page = 0; page < MAX_CONVERSATION_PAGES && afterId !== null; page += 1) {
      const input = { after: afterId, limit: CONVERSATIONS_PER_PAGE };
      const answer: Decoded<typeof decodeConversationPage> = await this.call(
        'conversations.list',
        input,
        decodeConversationPage,
      );
      all.push(...answer.conversations);
      afterId = answer.next;
    }
    return all;
  }

  /**
   * Messages after a seq with the notices between them, in their order; the server may give fewer than `limit`. `after`
   * null: the newest messages.
   */
  history(conversation: number, after: number | null, limit: number): Promise<History> {
    const range = after === null ? { limit } : { after, limit };
    return this.call('messages.history', { conversation, ...range, notices: true }, decodeHistory);
  }

  /**
   * Resolves to the message as it is stored. The server stores one message per `clientId`, however often it is sent.
   */
  sendMessage(message: NewMessage): Promise<Message> {
    const { conversation, text, files, clientId } = message;
    return this.call('messages.send', { conversation, text, files, client_id: clientId }, decodeMessage);
  }

  /** Stores a file. Rejects with ServerError, ConnectionError, and the reason of an aborted signal. */
  uploadFile(file: File, options: UploadOptions): Promise<StoredFile> {
    return uploadFile(this.#base, file, options);
  }

  async removeFile(file: string): Promise<void> {
    await this.call('files.remove', { file }, decodeRemoved);
  }

  async fileLimits(): Promise<FileLimits> {
    const { files, limits: ofMessages } = await this.get('v1/about', decodeAbout);
    return { maxBytes: files.maxBytes, maxFiles: ofMessages.attachments };
  }

  editMessage(conversation: number, seq: number, text: string): Promise<Message> {
    return this.call('messages.edit', { conversation, seq, text }, decodeMessage);
  }

  /** `outlivesPage`: the browser sends the request even if the page is closed before the answer. */
  deleteMessage(conversation: number, seq: number, { outlivesPage = false } = {}): Promise<Message> {
    const path = 'v1/api/messages.delete';
    return this.#send('POST', path, { conversation, seq }, decodeMessage, { keepalive: outlivesPage });
  }

  /** Resolves to the account's read position after the call. */
  async markRead(conversation: number, seq: number): Promise<number> {
    return (await this.call('messages.mark-read', { conversation, seq }, decodeReadPosition)).read_seq;
  }

  /** The numbers of the accounts of a conversation that are online. */
  async onlineAccounts(conversation: number): Promise<number[]> {
    return (await this.call('presence.list', { conversation }, decodeOnline)).accounts.map(({ id }) => id);
  }

  /** The newest messages with all words of a text, in all conversations of the account. */
  async search(text: string): Promise<FoundMessage[]> {
    return (await this.call('messages.search', { text, limit: MAX_FOUND_MESSAGES }, decodeFound)).messages;
  }

  /** The number of the private conversation with `user`, who is named by number or nick. */
  async openPrivateConversation(user: number | string): Promise<number> {
    return (await this.call('private.open', { user }, decodeOpenedConversation)).id;
  }

  /**
   * Accounts whose nick or name begins with a text. With a conversation: only its members, for whom any word of the
   * name may begin with the text.
   */
  async searchAccounts(text: string, conversation: number | null): Promise<FoundAccount[]> {
    const input = { text, limit: MAX_FOUND_ACCOUNTS, ...(conversation === null ? {} : { conversation }) };
    return (await this.call('accounts.search', input, decodeAccounts)).accounts;
  }

  /** Reads a resource by HTTP GET. `path` is relative to the base URL of the server. */
  get<Answer>(path: string, decode: Decoder<Answer>): Promise<Answer> {
    return this.#send('GET', path, undefined, decode);
  }

  /** Calls an operation. Rejects with ServerError and ConnectionError. */
  call<Answer>(operation: string, input: object, decode: Decoder<Answer>): Promise<Answer> {
    return this.#send('POST', `v1/api/${operation}`, input, decode);
  }

  async #send<Answer>(
    method: string,
    path: string,
    input: object | undefined,
    decode: Decoder<Answer>,
    { keepalive = false } = {},
  ): Promise<Answer> {
    // Does not set `mode: 'same-origin'`: with that mode, a page whose referrer policy is no-referrer sends `Origin:
    // null`, which the server refuses.
    const response = await fetch(new URL(path, this.#base), {
      method,
      cache: 'no-store',
      keepalive,
      signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS),
      ...(input === undefined ? {} : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(input) }),
    }).catch((cause: unknown) => {
      throw new ConnectionError('there is no connection to the server', { cause });
    });
    const answer: unknown = await response.json().catch((cause: unknown) => {
      throw new ConnectionError(UNREADABLE_ANSWER, { cause });
    });
    if (!response.ok) throw serverErrorIn(answer);
    const errorSentence = `the server answers ${path} in a way that is not known here: load this page again`;
    return decodeReceived(decode, answer, errorSentence);
  }
}
