import type { AccountId, ConversationId, Seq, SessionOrTokenId } from '../model/ids.ts';
import type { Bus, BusEvents, Membership, EphemeralEvent } from './bus.ts';

/** PostgreSQL takes 7,999 bytes; what does not fit is said as "something changed". */
export const MAX_PAYLOAD_BYTES = 7_900;
/** So many words do not fit whatever they are; beyond it they are not kept. */
const MAX_ITEMS_BEFORE_RESYNC = 2_000;
/** Signals leave room for the words that must not be lost. */
const EPHEMERAL_DROP_ITEM_COUNT = 500;

/** What can be told to other nodes. */
export type BroadcastEvent = Exclude<keyof BusEvents, 'resync'>;
type Payload<Event extends BroadcastEvent> = Parameters<BusEvents[Event]>[0];

/** How an event is written: a letter, then its items with commas between. */
interface EventCodec<Event extends BroadcastEvent> {
  readonly letter: string;
  readonly encode: (payload: Payload<Event>) => readonly string[];
  readonly decode: (items: readonly string[]) => Payload<Event>;
}

const parseNumbers = (item: string): number[] => item.split(':').map(Number);
const decodeMemberships = (items: readonly string[]): Membership[] =>
  items.map((item) => {
    const [conversationId, accountId] = parseNumbers(item) as [ConversationId, AccountId];
    return { conversationId, accountId };
  });

const codecs: {
  readonly [Event in Exclude<BroadcastEvent, 'ephemeral' | 'leasesNeedRebalancing'>]: EventCodec<Event>;
} = {
  messagesCommitted: {
    letter: 'a',
    encode: (newestSeqByConversation) => [...newestSeqByConversation].map(([id, seq]) => `${id}:${seq}`),
    decode: (items) => new Map(items.map((item) => parseNumbers(item) as [ConversationId, Seq])),
  },
  nonMessageChangesCommitted: {
    letter: 'r',
    encode: (ids) => ids.map(String),
    decode: (items) => items.map(Number) as ConversationId[],
  },
  hooksChanged: {
    letter: 'h',
    encode: (ids) => ids.map(String),
    decode: (items) => items.map(Number) as ConversationId[],
  },
  tokensRevoked: { letter: 't', encode: (hashes) => hashes, decode: (items) => items },
  membersChanged: {
    letter: 'm',
    encode: (members) => members.map(({ conversationId, accountId }) => `${conversationId}:${accountId}`),
    decode: decodeMemberships,
  },
  sessionsEnded: {
    letter: 's',
    encode: (ids) => ids.map(String),
    decode: (items) => items.map(Number) as SessionOrTokenId[],
  },
  accountsChanged: {
    letter: 'u',
    encode: (ids) => ids.map(String),
    decode: (items) => items.map(Number) as AccountId[],
  },
};

const ephemeralLetters = { typing: 'y', presence: 'p', read: 'd' } as const;

function isEphemeral(notification: string): boolean {
  return Object.values(ephemeralLetters).some((letter) => notification.startsWith(letter));
}

function encodeEphemeral(signal: EphemeralEvent): string {
  if (signal.kind === 'presence') return `p${signal.accountId}:${signal.online ? 1 : 0}`;
  const member = `${signal.conversationId}:${signal.accountId}`;
  return signal.kind === 'typing' ? `y${member}` : `d${member}:${signal.seq}`;
}

function decodeEphemeral(letter: string, item: string): EphemeralEvent {
  const [first, second, third] = parseNumbers(item) as [number, number, number];
  if (letter === 'p') return { kind: 'presence', accountId: first as AccountId, online: second === 1 };
  const member = { conversationId: first as ConversationId, accountId: second as AccountId };
  return letter === 'y' ? { kind: 'typing', ...member } : { kind: 'read', ...member, seq: third as Seq };
}

/** Words that wait to be told to the other nodes; they are told together. */
export class NotificationBatch {
  /** By letter. Of `messagesCommitted` the newest seq of each conversation. */
  readonly #itemsByLetter = new Map<string, Set<string>>();
  readonly #newestSeqByConversation = new Map<ConversationId, Seq>();
  #itemCount = 0;
  #leasesNeedRebalancing = false;
  /** True when more happened than is listed here. */
  mustSendResync: boolean;

  constructor(mustSendResync = false) {
    this.mustSendResync = mustSendResync;
  }

  get isEmpty(): boolean {
    return !this.mustSendResync && !this.#leasesNeedRebalancing && this.#itemCount === 0;
  }

  /** Takes a word, or notes that there was one too many. Signals that do not fit are lost. */
  add<Event extends BroadcastEvent>(event: Event, payload: Payload<Event>): void {
    if (event === 'leasesNeedRebalancing') this.#leasesNeedRebalancing = true;
    else if (event === 'ephemeral') {
      const encoded = encodeEphemeral(payload as EphemeralEvent);
      if (this.#itemCount < EPHEMERAL_DROP_ITEM_COUNT) this.#put(encoded[0]!, [encoded.slice(1)]);
    } else if (event === 'messagesCommitted') {
      for (const [id, seq] of payload as Payload<'messagesCommitted'>) this.#newestSeqByConversation.set(id, seq);
      this.#recountItemsAfterAdd();
    } else {
      const codec = codecs[event as keyof typeof codecs] as unknown as EventCodec<Event>;
      this.#put(codec.letter, codec.encode(payload));
    }
    if (this.#itemCount > MAX_ITEMS_BEFORE_RESYNC) this.#overflow();
  }

  /** The payload of NOTIFY: all notifications, separated by semicolons, or `*` for a resync. */
  encode(maxBytes: number): string {
    const notifications = [...this.#itemsByLetter].map(([letter, items]) => `${letter}${[...items].join(',')}`);
    const reliable = notifications.filter((notification) => !isEphemeral(notification));
    if (this.#newestSeqByConversation.size > 0)
      reliable.unshift(`a${codecs.messagesCommitted.encode(this.#newestSeqByConversation).join(',')}`);
    if (this.#leasesNeedRebalancing) reliable.push('l');
    const text = reliable.join(';');
    if (this.mustSendResync || text.length > maxBytes) return '*';
    // Signals that do not fit are lost: for their sake nobody has to look for anything.
    return notifications.filter(isEphemeral).reduce((sum, notification) => {
      const longer = sum === '' ? notification : `${sum};${notification}`;
      return longer.length > maxBytes ? sum : longer;
    }, text);
  }

  #put(letter: string, items: readonly string[]): void {
    const set = this.#itemsByLetter.get(letter) ?? new Set();
    // Again at the end: of two words about one thing the later one has to be heard last.
    for (const item of items) {
      set.delete(item);
      set.add(item);
    }
    this.#itemsByLetter.set(letter, set);
    this.#recountItemsAfterAdd();
  }

  #recountItemsAfterAdd(): void {
    this.#itemCount = this.#newestSeqByConversation.size;
    for (const items of this.#itemsByLetter.values()) this.#itemCount += items.size;
  }

  #overflow(): void {
    this.mustSendResync = true;
    this.#itemsByLetter.clear();
    this.#newestSeqByConversation.clear();
    this.#leasesNeedRebalancing = false;
    this.#itemCount = 0;
  }
}

/** Says a word of another node to this one's listeners; false when it is none of these. */
export function dispatchNotification(
  local: Pick<Bus, 'publish'>,
  letter: string | undefined,
  items: readonly string[],
): boolean {
  if (letter === 'l') {
    local.publish('leasesNeedRebalancing', undefined);
    return true;
  }
  if (Object.values(ephemeralLetters).some((each) => each === letter)) {
    for (const item of items) local.publish('ephemeral', decodeEphemeral(letter!, item));
    return true;
  }
  const found = Object.entries(codecs).find(([, codec]) => codec.letter === letter);
  if (found === undefined) return false;
  const [event, codec] = found as [BroadcastEvent, EventCodec<BroadcastEvent>];
  local.publish(event, codec.decode(items));
  return true;
}
