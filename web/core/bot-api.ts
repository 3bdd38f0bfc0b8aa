import { arrayOf, integer, nullable, objectWithAtLeast, string, type Decoded } from '../../client/core/decode.ts';
import type { Api } from './api.ts';

/**
 * The `limit` of a request for a list, the greatest that the server accepts. One answer contains all: by default a
 * person can have fewer bots, and a bot has at most 100 tokens.
 */
const MAX_LISTED = 1_000;

const decodeBots = objectWithAtLeast({
  bots: arrayOf(objectWithAtLeast({ id: integer, nick: string, name: string, tokens: integer })),
});
const decodeCreatedBot = objectWithAtLeast({ id: integer, nick: string });
const decodeRemovedBot = objectWithAtLeast({ id: integer });
const decodeTokens = objectWithAtLeast({
  tokens: arrayOf(
    objectWithAtLeast({
      id: integer,
      label: string,
      scopes: arrayOf(string),
      used_at: string,
      expires_at: nullable(string),
    }),
  ),
});
const decodeCreatedToken = objectWithAtLeast({ id: integer, label: string, token: string });
const decodeRevokedToken = objectWithAtLeast({ token: integer });

/** A bot of the signed-in account. */
export type Bot = Decoded<typeof decodeBots>['bots'][number];
/** A token of a bot, without its secret. */
export type BotToken = Decoded<typeof decodeTokens>['tokens'][number];
/** A new token with its secret, which the server shows only in this answer. */
export type CreatedToken = Decoded<typeof decodeCreatedToken>;

/** A token to create. */
export interface NewToken {
  readonly label: string;
  readonly scopes: readonly string[];
  /** Null: the token is valid until it is revoked. */
  readonly expiresInS: number | null;
}

/** The operations on the signed-in account's bots. They reject with ServerError and ConnectionError. */
export class BotApi {
  readonly #api: Api;

  constructor(api: Api) {
    this.#api = api;
  }

  async bots(): Promise<Bot[]> {
    return (await this.#api.call('bots.list', { limit: MAX_LISTED }, decodeBots)).bots;
  }

  /** An empty `name`: the nick becomes the name. */
  async createBot(nick: string, name: string): Promise<void> {
    const input = name.trim() === '' ? { nick } : { nick, name };
    await this.#api.call('bots.create', input, decodeCreatedBot);
  }

  async removeBot(bot: number): Promise<void> {
    await this.#api.call('bots.remove', { bot }, decodeRemovedBot);
  }

  async tokens(bot: number): Promise<BotToken[]> {
    return (await this.#api.call('tokens.list', { bot, limit: MAX_LISTED }, decodeTokens)).tokens;
  }

  createToken(bot: number, { label, scopes, expiresInS }: NewToken): Promise<CreatedToken> {
    const input = { bot, label, scopes, ...(expiresInS === null ? {} : { expires_in_s: expiresInS }) };
    return this.#api.call('tokens.create', input, decodeCreatedToken);
  }

  async revokeToken(bot: number, token: number): Promise<void> {
    await this.#api.call('tokens.revoke', { bot, token }, decodeRevokedToken);
  }
}
