import {
  arrayOf,
  boolean,
  integer,
  nullable,
  objectWithAtLeast,
  string,
  type Decoded,
} from '../../../client/core/decode.ts';
import type { OperationCaller } from './operation-caller.ts';

const decodePerson = objectWithAtLeast({
  id: integer,
  kind: string,
  nick: string,
  name: string,
  about: nullable(string),
  role: string,
  created_at: string,
});
const decodeBlocked = objectWithAtLeast({ blocked: arrayOf(objectWithAtLeast({ id: integer })) });
const decodeBlock = objectWithAtLeast({ id: integer });
const decodeOnline = objectWithAtLeast({ accounts: arrayOf(objectWithAtLeast({ id: integer })), more: boolean });

/** The fields of an account that everybody sees. */
export type PublicProfile = Decoded<typeof decodePerson>;

/** The operations on other accounts. They reject with ServerError and ConnectionError. */
export class PeopleApi {
  readonly #api: OperationCaller;

  constructor(api: OperationCaller) {
    this.#api = api;
  }

  /** A person or bot, by number or nick. */
  find(user: number | string): Promise<PublicProfile> {
    return this.#api.call('accounts.find', { user }, decodePerson);
  }

  /** Whether the signed-in account has blocked another account. */
  async isBlocked(account: number): Promise<boolean> {
    // Reads one entry from this number on, since the list is in the order of the accounts' numbers.
    const { blocked } = await this.#api.call('blocks.list', { after: account - 1, limit: 1 }, decodeBlocked);
    return blocked[0]?.id === account;
  }

  async setBlocked(account: number, isBlocked: boolean): Promise<void> {
    await this.#api.call(isBlocked ? 'blocks.add' : 'blocks.remove', { user: account }, decodeBlock);
  }

  /**
   * Whether a member of a conversation is online; null: the server's list is incomplete and does not name the account.
   */
  async isOnline(conversation: number, account: number): Promise<boolean | null> {
    const { accounts, more } = await this.#api.call('presence.list', { conversation }, decodeOnline);
    return accounts.some(({ id }) => id === account) ? true : more ? null : false;
  }
}
