import { signal } from '@preact/signals';
import { byActivity, type ConversationEntry } from './unread.ts';

/**
 * The maximum number of private conversations that one call of `ask` covers, with one request each: the open one, and
 * those with the newest messages.
 */
const MAX_PEERS = 20;

/** A private conversation and the other account in it. */
interface Peer {
  readonly conversation: number;
  readonly account: number;
}

/** The presence of the accounts with whom the signed-in account has private conversations. */
export class PeerPresence {
  /** By account, whether the account is online. Accounts whose presence the page does not know are missing. */
  readonly #online = signal<ReadonlyMap<number, boolean>>(new Map());
  readonly #fetchOnline: (conversation: number) => Promise<readonly number[]>;
  readonly #asked = new Set<number>();
  /** A counter that rises with each call of `clear`: answers to earlier requests are then ignored. */
  #generation = 0;

  /** `fetchOnline` fetches the numbers of a conversation's accounts that are online. */
  constructor(fetchOnline: (conversation: number) => Promise<readonly number[]>) {
    this.#fetchOnline = fetchOnline;
  }

  /** Whether an account is online; null: the page does not know. Subscribes the calling component. */
  isOnline(account: number): boolean | null {
    return this.#online.value.get(account) ?? null;
  }

  /**
   * Fetches the presence of the first 20 peers, one after the other, without those that it has fetched before. Never
   * rejects.
   */
  async ask(peers: readonly Peer[]): Promise<void> {
    const generation = this.#generation;
    for (const { conversation, account } of peers.slice(0, MAX_PEERS)) {
      if (this.#asked.has(account)) continue;
      this.#asked.add(account);
      // A failure is ignored: the account is then not shown as online.
      const online = await this.#fetchOnline(conversation).catch(() => null);
      if (generation !== this.#generation) return;
      // A notification that arrived during the request is newer than the answer, and already set the presence.
      if (online !== null && !this.#online.peek().has(account)) this.#set(account, online.includes(account));
    }
  }

  /** Handles a notification that an account came online or went offline. */
  onNotification(account: number, isOnline: boolean): void {
    // Ignores accounts that `ask` did not cover, such as members of groups: other parts of the page show their
    // presence.
    if (this.#asked.has(account)) this.#set(account, isOnline);
  }

  /** Forgets who is online, after the connection was lost: the server then reports no changes of presence. */
  clear(): void {
    this.#generation += 1;
    this.#asked.clear();
    this.#online.value = new Map();
  }

  #set(account: number, isOnline: boolean): void {
    this.#online.value = new Map([...this.#online.peek(), [account, isOnline]]);
  }
}

/** The private conversations: the open one, then the others by the time of their last message. */
export function peersIn(entries: Iterable<ConversationEntry>, openConversation: number | null): Peer[] {
  const isOpen = ({ info }: ConversationEntry): number => Number(info.id === openConversation);
  const sorted = [...entries].sort((a, b) => isOpen(b) - isOpen(a) || byActivity(a, b));
  return sorted.flatMap(({ info: { id, peer } }) => (peer === null ? [] : [{ conversation: id, account: peer.id }]));
}
