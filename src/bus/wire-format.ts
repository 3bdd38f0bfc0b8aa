import type { AccountId, ConversationId, Seq, SessionOrTokenId } from '../model/ids.ts';
import type { Bus, BusEvents, EphemeralEvent, Membership, ReliableEvent } from './bus.ts';
import { decodePresence } from './presence-format.ts';

/** The maximum size of a payload of NOTIFY. PostgreSQL accepts 7,999 bytes. */
export const MAX_PAYLOAD_BYTES = 7_900;
/** The letter of a resync notification. Its items are the letters of the lost kinds; no items mean all kinds. */
export const RESYNC_LETTER = '*';
export const PRESENCE_LETTER = 'p';

/** Events that are sent to other nodes. */
export type BroadcastEvent = Exclude<keyof BusEvents, 'resync'>;
type Payload<Event extends BroadcastEvent> = Parameters<BusEvents[Event]>[0];

/** The encoding of an event: a letter, then its items with commas between them. */
interface EventCodec<Event extends ReliableEvent> {
  readonly letter: string;
  /** The items of a payload, each with its subject: of two items with the same subject only the later one is sent. */
  readonly encode: (payload: Payload<Event>) => Iterable<readonly [subject: number | string, item: string]>;
  readonly decode: (items: readonly string[]) => Payload<Event>;
}

const parseNumbers = (item: string): number[] => item.split(':').map(Number);
const encodeEach = (items: readonly (number | string)[]): [string, string][] =>
  items.map((item) => [String(item), String(item)]);
const decodeMemberships = (items: readonly string[]): Membership[] =>
  items.map((item) => {
    const [conversationId, accountId] = parseNumbers(item) as [ConversationId, AccountId];
    return { conversationId, accountId };
  });

/**
 * The encodings of reliable events, in the order in which the events are sent: access rights first, the most frequent
 * kinds last.
 */
const codecs: { readonly [Event in ReliableEvent]: EventCodec<Event> } = {
  tokensRevoked: { letter: 't', encode: encodeEach, decode: (items) => items },
  sessionsEnded: { letter: 's', encode: encodeEach, decode: (items) => items.map(Number) as SessionOrTokenId[] },
  membersChanged: {
    letter: 'm',
    encode: (members) => encodeEach(members.map(({ conversationId, accountId }) => `${conversationId}:${accountId}`)),
    decode: decodeMemberships,
  },
  accountsChanged: { letter: 'u', encode: encodeEach, decode: (items) => items.map(Number) as AccountId[] },
  hooksChanged: { letter: 'h', encode: encodeEach, decode: (items) => items.map(Number) as ConversationId[] },
  leasesNeedRebalancing: { letter: 'l', encode: () => [['', '']], decode: () => undefined },
  nonMessageChangesCommitted: {
    letter: 'r',
    encode: encodeEach,
    decode: (items) => items.map(Number) as ConversationId[],
  },
  hookEventsCommitted: { letter: 'e', encode: encodeEach, decode: (items) => items.map(Number) as ConversationId[] },
  messagesCommitted: {
    letter: 'a',
    encode: (newestSeqByConversation) => [...newestSeqByConversation].map(([id, seq]) => [id, `${id}:${seq}`]),
    decode: (items) => new Map(items.map((item) => parseNumbers(item) as [ConversationId, Seq])),
  },
};

const eventsByLetter = new Map(
  (Object.entries(codecs) as [ReliableEvent, EventCodec<ReliableEvent>][]).map(([event, { letter }]) => [
    letter,
    event,
  ]),
);
/** The letters of reliable events, in the order in which they are sent. */
export const RELIABLE_LETTERS: readonly string[] = [...eventsByLetter.keys()];
/** All kinds of events that a resync may name. */
export const RELIABLE_EVENTS: ReadonlySet<ReliableEvent> = new Set(eventsByLetter.values());

/** The items of a reliable event, with their letter. */
export function encodeReliable<Event extends ReliableEvent>(
  event: Event,
  payload: Payload<Event>,
): { letter: string; items: Iterable<readonly [subject: number | string, item: string]> } {
  const { letter, encode } = codecs[event] as unknown as EventCodec<Event>;
  return { letter, items: encode(payload) };
}

const ephemeralLetters = { typing: 'y', read: 'd', settings: 'n' } as const;

export function encodeEphemeral(signal: EphemeralEvent): { letter: string; item: string } {
  const member = `${signal.conversationId}:${signal.accountId}`;
  const letter = ephemeralLetters[signal.kind];
  return { letter, item: signal.kind === 'read' ? `${member}:${signal.seq}` : member };
}

function decodeEphemeral(letter: string, item: string): EphemeralEvent {
  const [conversationId, accountId, seq] = parseNumbers(item) as [ConversationId, AccountId, Seq];
  const member = { conversationId, accountId };
  if (letter === ephemeralLetters.read) return { kind: 'read', ...member, seq };
  return { kind: letter === ephemeralLetters.typing ? 'typing' : 'settings', ...member };
}

/** The kinds that these letters of a resync name. An unknown letter, which a newer program sent, means all kinds. */
export function decodeResync(letters: readonly string[]): ReadonlySet<ReliableEvent> {
  const events = letters.map((letter) => eventsByLetter.get(letter));
  return new Set(events.includes(undefined) ? RELIABLE_EVENTS : (events as ReliableEvent[]));
}

/** Publishes another node's notification to this node's listeners; false when its letter is unknown. */
export function dispatchNotification(
  localBus: Pick<Bus, 'publish'>,
  node: string,
  { letter, items }: { letter: string | undefined; items: readonly string[] },
): boolean {
  if (letter === PRESENCE_LETTER) {
    for (const item of items) localBus.publish('presence', { node, update: decodePresence(item) });
    return true;
  }
  if (Object.values(ephemeralLetters).some((each) => each === letter)) {
    for (const item of items) localBus.publish('ephemeral', decodeEphemeral(letter!, item));
    return true;
  }
  const event = eventsByLetter.get(letter ?? '');
  if (event === undefined) return false;
  localBus.publish(event, (codecs[event] as EventCodec<ReliableEvent>).decode(items));
  return true;
}
