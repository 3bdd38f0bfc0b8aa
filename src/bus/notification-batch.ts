import type { BusEvents } from './bus.ts';
import { encodePresence } from './presence-format.ts';
import {
  encodeEphemeral,
  encodeReliable,
  PRESENCE_LETTER,
  RELIABLE_LETTERS,
  RESYNC_LETTER,
  type BroadcastEvent,
} from './wire-format.ts';

/**
 * The maximum number of queued events of one kind. If there are more, the other nodes get a resync of that kind
 * instead.
 */
const MAX_ITEMS_PER_LETTER = 20_000;
/** The maximum number of queued ephemeral events of one kind; further ones are dropped. */
const MAX_EPHEMERAL_EVENTS = 1_000;
/**
 * The maximum number of queued presence items. Further ones are dropped: the gap in their numbers makes the other nodes
 * request a snapshot.
 */
const MAX_PRESENCE_ITEMS = 50_000;

/** A payload of NOTIFY, and the items in it that must not be lost. */
interface TakenPayload {
  readonly payloadText: string;
  readonly itemsByLetter: ReadonlyMap<string, ReadonlyMap<number | string, string>>;
  readonly resyncLetters: ReadonlySet<string>;
}

/** Events queued for the other nodes, in as many payloads as they need. */
export class NotificationBatch {
  /** The items of events that must not be lost, by the letter of their kind, then by subject. */
  readonly #reliableItemsByLetter = new Map<string, Map<number | string, string>>();
  readonly #lossyItemsByLetter = new Map<string, Set<string>>();
  /** The letters of kinds with dropped events, which require a resync. */
  #resyncLetters = new Set<string>();

  get isEmpty(): boolean {
    return (
      this.#resyncLetters.size === 0 && this.#reliableItemsByLetter.size === 0 && this.#lossyItemsByLetter.size === 0
    );
  }

  /** Adds an event to the queue. If its kind has too many events, a resync replaces all events of that kind. */
  add<Event extends BroadcastEvent>(event: Event, payload: Parameters<BusEvents[Event]>[0]): void {
    if (event === 'ephemeral') {
      const { letter, item } = encodeEphemeral(payload as Parameters<BusEvents['ephemeral']>[0]);
      this.#addLossyUnlessFull(letter, item, MAX_EPHEMERAL_EVENTS);
    } else if (event === 'presence') {
      const { update } = payload as Parameters<BusEvents['presence']>[0];
      this.#addLossyUnlessFull(PRESENCE_LETTER, encodePresence(update), MAX_PRESENCE_ITEMS);
    } else {
      const { letter, items } = encodeReliable(event, payload as never);
      this.#addReliable(letter, items, true);
    }
  }

  /** Queues a resync of all kinds for the other nodes. */
  requireResync(): void {
    this.#reliableItemsByLetter.clear();
    this.#resyncLetters = new Set(RELIABLE_LETTERS);
  }

  /**
   * Takes the events that fit into a payload of NOTIFY: notifications separated by semicolons. Null: no event is
   * queued.
   */
  take(maxBytes: number): TakenPayload | null {
    if (this.isEmpty) return null;
    const resyncLetters = this.#resyncLetters;
    const notifications = resyncLetters.size === 0 ? [] : [encodeResync(resyncLetters)];
    this.#resyncLetters = new Set();
    let roomBytes = maxBytes - notifications.join().length;
    const takenByLetter = new Map<string, Map<number | string, string>>();
    const append = (letter: string, items: readonly string[], bytes: number): void => {
      if (items.length === 0) return;
      notifications.push(`${letter}${items.join(',')}`);
      roomBytes -= bytes;
    };
    for (const letter of RELIABLE_LETTERS) {
      const items = this.#reliableItemsByLetter.get(letter);
      if (items === undefined) continue;
      const { taken, bytes } = takeFitting(items, roomBytes);
      append(letter, [...taken.values()], bytes);
      if (taken.size > 0) takenByLetter.set(letter, taken);
      if (items.size === 0) this.#reliableItemsByLetter.delete(letter);
    }
    for (const [letter, items] of this.#lossyItemsByLetter) {
      const { taken, bytes } = takeFitting(items, roomBytes);
      append(letter, [...taken.values()], bytes);
      if (items.size === 0) this.#lossyItemsByLetter.delete(letter);
    }
    if (notifications.length === 0) return null;
    return { payloadText: notifications.join(';'), itemsByLetter: takenByLetter, resyncLetters };
  }

  /** Queues the events of a payload again that may not have been sent, except ephemeral events and presence. */
  putBack({ itemsByLetter, resyncLetters }: TakenPayload): void {
    for (const letter of resyncLetters) this.#requireResyncOf(letter);
    for (const [letter, items] of itemsByLetter) this.#addReliable(letter, items, false);
  }

  #addReliable(letter: string, items: Iterable<readonly [number | string, string]>, areNewer: boolean): void {
    if (this.#resyncLetters.has(letter)) return;
    const queuedItems = this.#reliableItemsByLetter.get(letter) ?? new Map<number | string, string>();
    for (const [subject, item] of items) if (areNewer || !queuedItems.has(subject)) queuedItems.set(subject, item);
    if (queuedItems.size > MAX_ITEMS_PER_LETTER) this.#requireResyncOf(letter);
    else if (queuedItems.size > 0) this.#reliableItemsByLetter.set(letter, queuedItems);
  }

  #requireResyncOf(letter: string): void {
    this.#reliableItemsByLetter.delete(letter);
    this.#resyncLetters.add(letter);
  }

  #addLossyUnlessFull(letter: string, item: string, maxItems: number): void {
    const queuedItems = this.#lossyItemsByLetter.get(letter) ?? new Set<string>();
    if (queuedItems.size >= maxItems) return;
    // Moves an equal item to the end: only the later of the two is sent.
    queuedItems.delete(item);
    queuedItems.add(item);
    this.#lossyItemsByLetter.set(letter, queuedItems);
  }
}

function encodeResync(letters: ReadonlySet<string>): string {
  return letters.size === RELIABLE_LETTERS.length ? RESYNC_LETTER : `${RESYNC_LETTER}${[...letters].join(',')}`;
}

/** Removes and returns the first items that fit into `roomBytes`, including their letter and separators. */
function takeFitting(
  items: Map<number | string, string> | Set<string>,
  roomBytes: number,
): { taken: Map<number | string, string>; bytes: number } {
  const taken = new Map<number | string, string>();
  // The letter and the semicolon before it take two bytes. The count begins one byte lower, since the loop adds a comma
  // for each item, and the last item has none.
  let usedBytes = 1;
  for (const [subject, item] of items.entries()) {
    if (usedBytes + item.length + 1 > roomBytes) break;
    usedBytes += item.length + 1;
    taken.set(subject, item);
  }
  for (const subject of taken.keys()) items.delete(subject as string);
  return { taken, bytes: usedBytes };
}
