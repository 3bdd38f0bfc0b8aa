import type { AccountId, ConversationId, Seq, SessionId } from '../model/ids.ts';
import type { Bus, BusEvents, Membership, Signal } from './bus.ts';

/** PostgreSQL takes 7,999 bytes; what does not fit is said as "something changed". */
export const MAX_PAYLOAD_BYTES = 7_900;
/** So many words do not fit whatever they are; beyond it they are not kept. */
const MAX_ITEMS = 2_000;
/** Signals leave room for the words that must not be lost. */
const MAX_SIGNALS = 500;

/** What can be told to other nodes. */
export type ToldEvent = Exclude<keyof BusEvents, 'gap'>;
type Payload<Event extends ToldEvent> = Parameters<BusEvents[Event]>[0];

/** How an event is written: a letter, then its items with commas between. */
interface Wording<Event extends ToldEvent> {
  readonly letter: string;
  readonly write: (payload: Payload<Event>) => readonly string[];
  readonly read: (items: readonly string[]) => Payload<Event>;
}

const numbers = (item: string): number[] => item.split(':').map(Number);
const memberships = (items: readonly string[]): Membership[] =>
  items.map((item) => {
    const [conversationId, accountId] = numbers(item) as [ConversationId, AccountId];
    return { conversationId, accountId };
  });

const wordings: { readonly [Event in Exclude<ToldEvent, 'signal' | 'leasesMoved'>]: Wording<Event> } = {
  advanced: {
    letter: 'a',
    write: (heads) => [...heads].map(([id, seq]) => `${id}:${seq}`),
    read: (items) => new Map(items.map((item) => numbers(item) as [ConversationId, Seq])),
  },
  revised: { letter: 'r', write: (ids) => ids.map(String), read: (items) => items.map(Number) as ConversationId[] },
  hooksChanged: {
    letter: 'h',
    write: (ids) => ids.map(String),
    read: (items) => items.map(Number) as ConversationId[],
  },
  tokensRevoked: { letter: 't', write: (hashes) => hashes, read: (items) => items },
  membersChanged: {
    letter: 'm',
    write: (members) => members.map(({ conversationId, accountId }) => `${conversationId}:${accountId}`),
    read: memberships,
  },
  sessionsEnded: { letter: 's', write: (ids) => ids.map(String), read: (items) => items.map(Number) as SessionId[] },
  accountsChanged: { letter: 'u', write: (ids) => ids.map(String), read: (items) => items.map(Number) as AccountId[] },
};

const signalLetters = { typing: 'y', presence: 'p', read: 'd' } as const;

function isSignal(word: string): boolean {
  return Object.values(signalLetters).some((letter) => word.startsWith(letter));
}

function writeSignal(signal: Signal): string {
  if (signal.kind === 'presence') return `p${signal.accountId}:${signal.online ? 1 : 0}`;
  const place = `${signal.conversationId}:${signal.accountId}`;
  return signal.kind === 'typing' ? `y${place}` : `d${place}:${signal.seq}`;
}

function readSignal(letter: string, item: string): Signal {
  const [first, second, third] = numbers(item) as [number, number, number];
  if (letter === 'p') return { kind: 'presence', accountId: first as AccountId, online: second === 1 };
  const place = { conversationId: first as ConversationId, accountId: second as AccountId };
  return letter === 'y' ? { kind: 'typing', ...place } : { kind: 'read', ...place, seq: third as Seq };
}

/** Words that wait to be told to the other nodes; they are told together. */
export class Outbox {
  /** By letter. Of `advanced` the newest seq of each conversation. */
  readonly #items = new Map<string, Set<string>>();
  readonly #advanced = new Map<ConversationId, Seq>();
  #count = 0;
  #leases = false;
  /** True when more happened than is listed here. */
  more: boolean;

  constructor(more = false) {
    this.more = more;
  }

  get isEmpty(): boolean {
    return !this.more && !this.#leases && this.#count === 0;
  }

  /** Takes a word, or notes that there was one too many. Signals that do not fit are lost. */
  add<Event extends ToldEvent>(event: Event, payload: Payload<Event>): void {
    if (event === 'leasesMoved') this.#leases = true;
    else if (event === 'signal') {
      const text = writeSignal(payload as Signal);
      if (this.#count < MAX_SIGNALS) this.#put(text[0]!, [text.slice(1)]);
    } else if (event === 'advanced') {
      for (const [id, seq] of payload as Payload<'advanced'>) this.#advanced.set(id, seq);
      this.#recount();
    } else {
      const wording = wordings[event as keyof typeof wordings] as unknown as Wording<Event>;
      this.#put(wording.letter, wording.write(payload));
    }
    if (this.#count > MAX_ITEMS) this.#overflow();
  }

  /** `<word>;<word>` for a notification, or `*`. */
  text(maxBytes: number): string {
    const words = [...this.#items].map(([letter, items]) => `${letter}${[...items].join(',')}`);
    const parts = words.filter((word) => !isSignal(word));
    if (this.#advanced.size > 0) parts.unshift(`a${wordings.advanced.write(this.#advanced).join(',')}`);
    if (this.#leases) parts.push('l');
    const text = parts.join(';');
    if (this.more || text.length > maxBytes) return '*';
    // Signals that do not fit are lost: for their sake nobody has to look for anything.
    return words.filter(isSignal).reduce((sum, word) => {
      const longer = sum === '' ? word : `${sum};${word}`;
      return longer.length > maxBytes ? sum : longer;
    }, text);
  }

  #put(letter: string, items: readonly string[]): void {
    const set = this.#items.get(letter) ?? new Set();
    // Again at the end: of two words about one thing the later one has to be heard last.
    for (const item of items) {
      set.delete(item);
      set.add(item);
    }
    this.#items.set(letter, set);
    this.#recount();
  }

  #recount(): void {
    this.#count = this.#advanced.size;
    for (const items of this.#items.values()) this.#count += items.size;
  }

  #overflow(): void {
    this.more = true;
    this.#items.clear();
    this.#advanced.clear();
    this.#leases = false;
    this.#count = 0;
  }
}

/** Says a word of another node to this one's listeners; false when it is none of these. */
export function hearWord(local: Pick<Bus, 'publish'>, letter: string | undefined, items: readonly string[]): boolean {
  if (letter === 'l') {
    local.publish('leasesMoved', undefined);
    return true;
  }
  if (Object.values(signalLetters).some((each) => each === letter)) {
    for (const item of items) local.publish('signal', readSignal(letter!, item));
    return true;
  }
  const found = Object.entries(wordings).find(([, wording]) => wording.letter === letter);
  if (found === undefined) return false;
  const [event, wording] = found as [ToldEvent, Wording<ToldEvent>];
  local.publish(event, wording.read(items));
  return true;
}
