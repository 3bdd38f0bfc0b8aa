import { signal } from '@preact/signals';
import { byActivity, type ConversationEntry } from './unread.ts';

/**
 * The maximum number of private conversations that one call of `fetchPresence` covers, with one request each: the open
 * one, and one, and those with the newest messages.
 */
const MAX_ASKED_PEERS = 20;

/** A private conversation and the other account in it. */
interface ConversationPeer {
  readonly conversation: number;
  readonly account: number;
}

/** The presence of the accounts with whom the signed-in account has private conversations. */
export class PeerPresence {
  /** By account, whether the account is online. Accounts whose presence the page does not know are missing. */
  readonly #onlineByAccount = signal<ReadonlyMap<number, boolean>>(new Map());
  readonly #fetchOnline: (conversation: number) => Promise<readonly number[]>;
  readonly #askedAccounts = new Set<number>();
  /** A counter that rises with each call of `clear`: answers to earlier requests are then ignored. */
  #generation = 0;

  /** `fetchOnline` fetches the numbers of a conversation's accounts that are online. */
  constructor(fetchOnline: (conversation: number) => Promise<readonly number[]>) {
    this.#fetchOnline = fetchOnline;
  }

  /** Whether an account is online; null: the page does not know. Subscribes the calling component. */
  isOnline(account: number): boolean | null {
    return this.#onlineByAccount.value.get(account) ?? null;
  }

  /**
   * Fetches the presence of the first 20 peers, one after the other, without those that it has fetched before. Never
   * rejects.
   */
  async fetchPresence(peers: readonly ConversationPeer[]): Promise<void> {
    const generation = this.#generation;
    for (const { conversation, account } of peers.slice(0, MAX_ASKED_PEERS)) {
      if (this.#askedAccounts.has(account)) continue;
      this.#askedAccounts.add(account);
      // A failure is ignored: the account is then not shown as online.
      const online = await this.#fetchOnline(conversation).catch(() => null);
      if (generation !== this.#generation) return;
      // A notification that arrived during the request is newer than the answer, and already set the presence.
      if (online !== null && !this.#onlineByAccount.peek().has(account)) this.#set(account, online.includes(account));
    }
  }

  /** Handles a notification that an account came online or went offline. */
  onNotification(account: number, isOnline: boolean): void {
    // Ignores accounts that `fetchPresence` did not cover, such as members of groups: other parts of the page show
    // their their presence.
    if (this.#askedAccounts.has(account)) this.#set(account, isOnline);
  }

  /** Forgets who is online, after the connection was lost: the server then reports no changes of presence. */
  clear(): void {
    this.#generation += 1;
    this.#askedAccounts.clear();
    this.#onlineByAccount.value = new Map();
  }

  #set(account: number, isOnline: boolean): void {
    this.#onlineByAccount.value = new Map([...this.#onlineByAccount.peek(), [account, isOnline]]);
  }
}

/** The private conversations: the open one, then the others by the time of their last message. */
export function peersIn(entries: Iterable<ConversationEntry>, openConversation: number | null): ConversationPeer[] {
  const isOpen = ({ info }: ConversationEntry): number => Number(info.id === openConversation);
  const sorted = [...entries].sort((a, b) => isOpen(b) - isOpen(a) || byActivity(a, b));
  return sorted.flatMap(({ info: { id, peer } }) => (peer === null ? [] : [{ conversation: id, account: peer.id }]));
}
