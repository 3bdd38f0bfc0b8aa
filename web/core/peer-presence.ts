import { signal } from '@preact/signals';
import { byActivity, type ConversationEntry } from './unread.ts';

/** Private conversations whose presence the page asks for at once: one request each, and those used last come first. */
const MAX_PEERS = 20;

/** A private conversation, and who is on its other side. */
interface Peer {
  readonly conversation: number;
  readonly account: number;
}

/** Which of the people with whom the account writes privately are online. */
export class PeerPresence {
  /** By account; one that is missing is not known. */
  readonly #online = signal<ReadonlyMap<number, boolean>>(new Map());
  readonly #fetchOnline: (conversation: number) => Promise<readonly number[]>;
  readonly #asked = new Set<number>();
  /** Raised when what was asked for before does not count any more. */
  #generation = 0;

  /** `fetchOnline`: the accounts of a conversation that are online. */
  constructor(fetchOnline: (conversation: number) => Promise<readonly number[]>) {
    this.#fetchOnline = fetchOnline;
  }

  /** Null: not known. Subscribes the calling component. */
  isOnline(account: number): boolean | null {
    return this.#online.value.get(account) ?? null;
  }

  /** Asks about those of the first 20 that it has not asked about, one after the other. Never rejects. */
  async ask(peers: readonly Peer[]): Promise<void> {
    const generation = this.#generation;
    for (const { conversation, account } of peers.slice(0, MAX_PEERS)) {
      if (this.#asked.has(account)) continue;
      this.#asked.add(account);
      // A hint: without it nobody is shown as online.
      const online = await this.#fetchOnline(conversation).catch(() => null);
      if (generation !== this.#generation) return;
      // A notification that came meanwhile is newer than the answer.
      if (online !== null && !this.#online.peek().has(account)) this.#set(account, online.includes(account));
    }
  }

  /** The server says that an account came online or went offline. */
  onNotification(account: number, isOnline: boolean): void {
    // Of members of groups the page shows the presence elsewhere.
    if (this.#asked.has(account)) this.#set(account, isOnline);
  }

  /** Without a connection nothing is known. */
  clear(): void {
    this.#generation += 1;
    this.#asked.clear();
    this.#online.value = new Map();
  }

  #set(account: number, isOnline: boolean): void {
    this.#online.value = new Map([...this.#online.peek(), [account, isOnline]]);
  }
}

/** The private conversations: the open one, then those that were used last. */
export function peersIn(entries: Iterable<ConversationEntry>, openConversation: number | null): Peer[] {
  const isOpen = ({ info }: ConversationEntry): number => Number(info.id === openConversation);
  const sorted = [...entries].sort((a, b) => isOpen(b) - isOpen(a) || byActivity(a, b));
  return sorted.flatMap(({ info: { id, peer } }) => (peer === null ? [] : [{ conversation: id, account: peer.id }]));
}
