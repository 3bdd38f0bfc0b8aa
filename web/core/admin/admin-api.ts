import {
  arrayOf,
  boolean,
  integer,
  nullable,
  objectWithAtLeast,
  string,
  type Decoded,
} from '../../../client/core/decode.ts';
import type { OperationCaller } from '../people/operation-caller.ts';

const ACCOUNTS_PER_PAGE = 100;

const decodeError = objectWithAtLeast({
  hook: integer,
  group: integer,
  host: string,
  at: string,
  category: nullable(string),
  code: nullable(integer),
});
const decodeDeliveries = objectWithAtLeast({
  age_ms: integer,
  hooks: objectWithAtLeast({ active: integer, failing: integer, parked: integer, paused: integer }),
  pending_hooks: integer,
  oldest_pending_at: nullable(string),
  last_errors: arrayOf(decodeError),
});
const decodeStatus = objectWithAtLeast({
  version: string,
  started_at: string,
  listeners: arrayOf(string),
  base_uri: string,
  database: string,
  database_servers: arrayOf(objectWithAtLeast({ server: string, used: boolean, rejection: nullable(string) })),
  ready: boolean,
  waiting_posts: integer,
  deliveries_in_flight: integer,
  deliveries: nullable(decodeDeliveries),
});
const decodeAccount = objectWithAtLeast({
  id: integer,
  nick: string,
  name: string,
  role: string,
  groups: integer,
  created_at: string,
  deactivated: boolean,
  signed_in: boolean,
});
const decodeAccountPage = objectWithAtLeast({ users: arrayOf(decodeAccount), next: nullable(string) });
const decodeLink = objectWithAtLeast({ link: string, expires_at: string });
const decodeNick = objectWithAtLeast({ nick: string });

/** What the server says about itself. */
export type ServerStatus = Decoded<typeof decodeStatus>;
/** An account of the installation. */
export type ListedAccount = Decoded<typeof decodeAccount>;
/** A link that signs a person in once. */
export type SignInLink = Decoded<typeof decodeLink>;

/** The operations of administrators. They reject with ServerError and ConnectionError. */
export class AdminApi {
  readonly #api: OperationCaller;

  constructor(api: OperationCaller) {
    this.#api = api;
  }

  status(): Promise<ServerStatus> {
    return this.#api.call('server.status', {}, decodeStatus);
  }

  /** A page of people and bots by nick, after the nick `after`; empty: from the first one on. */
  async accounts(after: string): Promise<{ accounts: ListedAccount[]; next: string | null }> {
    const input = { after, limit: ACCOUNTS_PER_PAGE };
    const { users, next } = await this.#api.call('accounts.list', input, decodeAccountPage);
    return { accounts: users, next };
  }

  /** The first accounts by nick: pages until they have at least `count` accounts, or the only ones there are. */
  async firstAccounts(count: number): Promise<{ accounts: ListedAccount[]; next: string | null }> {
    let { accounts, next } = await this.accounts('');
    while (next !== null && accounts.length < count) {
      const page = await this.accounts(next);
      accounts = [...accounts, ...page.accounts];
      next = page.next;
    }
    return { accounts, next };
  }

  async createAccount(nick: string, name: string, isAdmin: boolean): Promise<void> {
    const input = { nick, admin: isAdmin, ...(name === '' ? {} : { name }) };
    await this.#api.call('accounts.create', input, decodeNick);
  }

  /** Makes a link that signs the person in once within 24 hours. It replaces the former link. */
  createSignInLink(nick: string): Promise<SignInLink> {
    return this.#api.call('accounts.invite', { user: nick }, decodeLink);
  }

  /** Nobody signs in to a deactivated account; its sessions end at once. */
  async setActive(nick: string, isActive: boolean): Promise<void> {
    await this.#api.call(isActive ? 'accounts.activate' : 'accounts.deactivate', { user: nick }, objectWithAtLeast({}));
  }
}
