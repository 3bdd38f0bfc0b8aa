import { ServerError } from '../core/chat-error.ts';
import { arrayOf, integer, nullable, objectWithAtLeast } from '../core/decode.ts';
import type { LiveClient } from '../core/live-client.ts';
import { decodeConversation, type Conversation } from '../core/shapes.ts';
import { conversationName } from './chat-text.ts';
import { ChatCommandError } from './command-error.ts';

const CONVERSATIONS_PER_PAGE = 500;
/**
 * The maximum number of pages of the list of conversations. It is enough for 100,000 conversations, the most that a
 * server can be configured to allow an account.
 */
const MAX_CONVERSATION_PAGES = 200;

const decodeConversationPage = objectWithAtLeast({
  conversations: arrayOf(decodeConversation),
  next: nullable(integer),
});

/** The help text about the ways to name a conversation on the command line. */
export const CONVERSATION_HELP =
  'the number of the conversation, the title of a group that no other of yours has, or @nick for a private one';

/** All conversations of the signed-in account, in the order of their numbers. */
export async function listConversations(client: LiveClient): Promise<Conversation[]> {
  const all: Conversation[] = [];
  for (let after = 0, pages = 0; pages < MAX_CONVERSATION_PAGES; pages += 1) {
    const params = { after, limit: CONVERSATIONS_PER_PAGE };
    const page = await client.call('conversations.list', params, {
      decode: decodeConversationPage,
      isRepeatable: true,
    });
    all.push(...page.conversations);
    if (page.next === null) break;
    after = page.next;
  }
  return all;
}

/**
 * The conversation that a person named by number, title or @nick. Throws ChatCommandError if no conversation or more
 * than one matches.
 */
export async function findConversation(client: LiveClient, text: string): Promise<Conversation> {
  if (/^\d{1,15}$/.test(text)) return fetchConversation(client, Number(text));
  return matchConversation(await listConversations(client), text);
}

/** Finds the conversation that a person means in a list. Throws ChatCommandError if none or more than one matches. */
export function matchConversation(all: readonly Conversation[], text: string): Conversation {
  const wanted = text.toLowerCase();
  const fits = (each: Conversation): boolean => {
    if (each.kind === 'private')
      return each.peer?.nick?.toLowerCase() === wanted.replace(/^@/, '') && text.startsWith('@');
    return each.title.toLowerCase() === wanted || String(each.id) === wanted;
  };
  const [found, ...others] = all.filter(fits);
  if (found === undefined) {
    const hint = text.startsWith('@')
      ? `\`klatch chat open ${text.slice(1)}\` opens it`
      : '`klatch chat list` shows yours';
    throw new ChatCommandError('operationFailed', `you are in no conversation ${text}: ${hint}`);
  }
  if (others.length === 0) return found;
  const numbers = [found, ...others].map(({ id }) => id).join(', ');
  throw new ChatCommandError('operationFailed', `more than one group has this title: give a number (${numbers})`);
}

async function fetchConversation(client: LiveClient, conversation: number): Promise<Conversation> {
  return client.call('conversations.show', { conversation }, { decode: decodeConversation, isRepeatable: true });
}

/** Names of conversations for printed lines, fetched when first needed, for the listener of a client. */
export class ConversationNameCache {
  readonly #client: () => LiveClient;
  readonly #nameById = new Map<number, string>();

  constructor(client: () => LiveClient) {
    this.#client = client;
  }

  /** The name in the cache; null: the name was not fetched, or was forgotten after that. */
  cachedName(conversation: number): string | null {
    return this.#nameById.get(conversation) ?? null;
  }

  rememberNames(conversations: readonly Conversation[]): void {
    for (const each of conversations) this.#nameById.set(each.id, conversationName(each));
  }

  /** The next use fetches the name again, as after a change of the title. */
  forgetName(conversation: number): void {
    this.#nameById.delete(conversation);
  }

  /** The name of the conversation; its number if the account is no longer in it. */
  async findName(conversation: number): Promise<string> {
    const cachedName = this.#nameById.get(conversation);
    if (cachedName !== undefined) return cachedName;
    try {
      // A listener must not wait for the next connection, which waits for the listener.
      const options = { decode: decodeConversation, failsWhenDisconnected: true };
      this.rememberNames([await this.#client().call('conversations.show', { conversation }, options)]);
    } catch (error) {
      if (!(error instanceof ServerError) || error.code !== 'not_found') throw error;
      this.#nameById.set(conversation, `conversation ${conversation}`);
    }
    return this.#nameById.get(conversation)!;
  }
}
