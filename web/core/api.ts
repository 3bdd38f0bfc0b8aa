import { ConnectionError, ServerError } from '../../client/core/chat-error.ts';
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
import { decodeConversation, type Conversation } from '../../client/core/shapes.ts';

const REQUEST_TIMEOUT_MS = 30_000;
const CONVERSATIONS_OF_PAGE = 1_000;
/** An account is in 1,000 conversations as a rule (`limits`). */
const MAX_PAGES = 20;

const decodeAccount = objectWithAtLeast({ id: integer, nick: string, name: string, role: string });
const decodeSession = objectWithAtLeast({ session: nullable(integer), account: nullable(decodeAccount) });
const decodeFailure = objectWithAtLeast({ message: string, code: optional(string) });
const decodeConversationPage = objectWithAtLeast({
  conversations: arrayOf(decodeConversation),
  next: nullable(integer),
});

/** Who is signed in. */
export type SignedInAccount = Decoded<typeof decodeAccount>;

/** The requests of the page over HTTP; the session is in a cookie that the page cannot read. */
export class Api {
  readonly #base: URL;

  constructor(base: URL) {
    this.#base = base;
  }

  /** Who is signed in, or null. Rejects with ServerError and ConnectionError, as the others do. */
  async currentAccount(): Promise<SignedInAccount | null> {
    return (await this.#send('GET', 'v1/session', undefined, decodeSession)).account;
  }

  async signInByLink(link: string): Promise<SignedInAccount> {
    const decode = objectWithAtLeast({ account: decodeAccount });
    return (await this.#send('POST', 'v1/session', { link, label: 'browser' }, decode)).account;
  }

  async signOut(): Promise<void> {
    await this.#send('DELETE', 'v1/session', undefined, decodeSession);
  }

  /** All conversations of the account, by number. */
  async conversations(): Promise<Conversation[]> {
    const all: Conversation[] = [];
    let after: number | null = 0;
    for (let page = 0; page < MAX_PAGES && after !== null; page += 1) {
      const input = { after, limit: CONVERSATIONS_OF_PAGE };
      const answer: Decoded<typeof decodeConversationPage> = await this.#send(
        'POST',
        'v1/api/conversations.list',
        input,
        decodeConversationPage,
      );
      all.push(...answer.conversations);
      after = answer.next;
    }
    return all;
  }

  async #send<Answer>(
    method: string,
    path: string,
    input: object | undefined,
    decode: Decoder<Answer>,
  ): Promise<Answer> {
    // Not mode: 'same-origin', for which a page with the referrer policy no-referrer sends `Origin: null`.
    const response = await fetch(new URL(path, this.#base), {
      method,
      cache: 'no-store',
      signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS),
      ...(input === undefined ? {} : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(input) }),
    }).catch((cause: unknown) => {
      throw new ConnectionError('there is no connection to the server', { cause });
    });
    const answer: unknown = await response.json().catch((cause: unknown) => {
      throw new ConnectionError('what answers is not the server: is a proxy in between?', { cause });
    });
    if (response.ok)
      return decodeReceived(decode, answer, `the server answers ${path} in a way that is not known here`);
    const { code, message } = decodeReceived(
      decodeFailure,
      answer,
      'the server refuses in a way that is not known here',
    );
    throw new ServerError(code, message);
  }
}
