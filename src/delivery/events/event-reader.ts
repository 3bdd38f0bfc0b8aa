import { LRUCache } from 'lru-cache';
import type { Log } from '../../log.ts';
import type { ChangeEventKind } from '../../model/change-event.ts';
import type { ConversationId, LogEpoch, Rev, Seq } from '../../model/ids.ts';
import type { SenderKind } from '../../model/roles.ts';
import { readDeliveryEvents, type DeliveryEvent, type DeliveryEventPage } from '../../storage/hooks/hook-events.ts';
import type { Pool } from '../../storage/db/pool.ts';
import type { Witness } from '../../storage/messages/witness.ts';
import { eventBody, type CreateFileLink } from '../payload.ts';

/** An event with its body in UTF-8, encoded once for all hooks of its group. */
export interface EncodedEvent {
  readonly rev: Rev;
  readonly logEpoch: LogEpoch;
  /** A lane that keeps the order sends the event after this message and before the next one. */
  readonly afterSeq: Seq;
  readonly kind: ChangeEventKind;
  readonly actorKind: SenderKind;
  readonly hops: number;
  /** The message that was changed. */
  readonly seq: Seq;
  /** Empty if a retention rule removed the message. */
  readonly body: Buffer;
}

/** The next event after a rev. */
interface NextEvent {
  /** Null: there is no event so far. */
  readonly event: EncodedEvent | null;
  /** The newest message at the time of the read: events that are written later come after it. */
  readonly headSeq: Seq;
}

/** Bounds of one query at one position: it reads at most 64 events, and stops once their texts exceed 128 KiB. */
const PAGE_LIMITS = { limit: 64, bytes: 128 * 1024 } as const;
/** Positions of one query. */
const MAX_POSITIONS_PER_QUERY = 128;
/** Bound of the cache over all conversations, in bytes of bodies. */
const CACHE_BYTES = 8 * 1024 * 1024;
const CACHE_ENTRY_OVERHEAD_BYTES = 500;
/** An older cache entry is read again: the message may have been changed meanwhile. */
const CACHE_TTL_MS = 1_000;

interface ReadRequest {
  readonly conversationId: ConversationId;
  readonly afterRev: Rev;
  readonly resolve: (next: NextEvent) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Reads events for the lanes of hooks that ask for them, as `MessageReader` reads messages. It caches the next event,
 * but never its absence: an event may be written at any moment.
 */
export class EventReader {
  readonly #pool: Pool;
  readonly #createFileLink: CreateFileLink;
  readonly #witness: Witness;
  readonly #log: Log;
  readonly #cache = new LRUCache<string, NextEvent & { readonly event: EncodedEvent }>({
    maxSize: CACHE_BYTES,
    sizeCalculation: ({ event }) => event.body.length + CACHE_ENTRY_OVERHEAD_BYTES,
    ttl: CACHE_TTL_MS,
    ttlResolution: 50,
  });
  #requests: ReadRequest[] = [];
  #reading = false;
  #failing = false;

  /**
   * `witness` records the events that were read: a receiver may get them before their notification reaches this node.
   */
  constructor(pool: Pool, options: { createFileLink: CreateFileLink; witness: Witness; log: Log }) {
    this.#pool = pool;
    this.#createFileLink = options.createFileLink;
    this.#witness = options.witness;
    this.#log = options.log;
  }

  /**
   * The next event after a rev, with its message as it is now or was a second ago. Rejects when the database is
   * unreachable.
   */
  next(conversationId: ConversationId, afterRev: Rev): Promise<NextEvent> {
    const known = this.#cache.get(keyOf(conversationId, afterRev));
    if (known !== undefined) return Promise.resolve(known);
    return new Promise((resolve, reject) => {
      this.#requests.push({ conversationId, afterRev, resolve, reject });
      if (!this.#reading) void this.#drain();
    });
  }

  async #drain(): Promise<void> {
    this.#reading = true;
    // Lanes that the same notification woke call `next` in the same turn of the event loop.
    await new Promise(setImmediate);
    while (this.#requests.length > 0) await this.#queryOneBatch();
    this.#reading = false;
  }

  async #queryOneBatch(): Promise<void> {
    const byPosition = Map.groupBy(this.#requests, ({ conversationId, afterRev }) => keyOf(conversationId, afterRev));
    const groups = [...byPosition.values()].slice(0, MAX_POSITIONS_PER_QUERY);
    const taken = new Set(groups.flat());
    this.#requests = this.#requests.filter((request) => !taken.has(request));
    try {
      const positions = groups.map((group) => group[0]!);
      const pages = await this.#pool.run((sql) => readDeliveryEvents(sql, positions, PAGE_LIMITS));
      this.#failing = false;
      groups.forEach((group, index) => this.#cacheAndResolve(group, pages[index]!));
    } catch (error) {
      if (!this.#failing) this.#log.warn('events cannot be read for reverse webhooks, repeating', { error });
      this.#failing = true;
      for (const request of groups.flat()) request.reject(error);
    }
  }

  #cacheAndResolve(group: readonly ReadRequest[], { events, headSeq }: DeliveryEventPage): void {
    const { conversationId, afterRev } = group[0]!;
    const last = events.at(-1);
    if (last !== undefined) {
      const { rev, seq: changedSeq, at } = last;
      this.#witness.recordChange(conversationId, { rev, changedSeq, changedAtMs: at.getTime() });
    }
    let previous = afterRev;
    for (const event of events) {
      this.#cache.set(keyOf(conversationId, previous), { event: this.#encode(conversationId, event), headSeq });
      previous = event.rev;
    }
    // Encodes again if the event is too large for the cache.
    const first = this.#cache.get(keyOf(conversationId, afterRev))?.event;
    const event = events.length === 0 ? null : (first ?? this.#encode(conversationId, events[0]!));
    for (const request of group) request.resolve({ event, headSeq });
  }

  #encode(conversationId: ConversationId, event: DeliveryEvent): EncodedEvent {
    const { rev, logEpoch, afterSeq, seq, kind, actorKind, hops, message } = event;
    const text = message === null ? '' : eventBody(conversationId, { ...event, message }, this.#createFileLink);
    return { rev, logEpoch, afterSeq, seq, kind, actorKind, hops, body: Buffer.from(text) };
  }
}

function keyOf(conversationId: ConversationId, afterRev: Rev): string {
  return `${conversationId}:${afterRev}`;
}
