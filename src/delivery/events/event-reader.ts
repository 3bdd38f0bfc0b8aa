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
  /** A lane with `order: strict` sends the event after the message with this seq, and before the next message. */
  readonly afterSeq: Seq;
  readonly kind: ChangeEventKind;
  readonly actorKind: SenderKind;
  readonly hops: number;
  /** The seq of the message that the event changed. */
  readonly seq: Seq;
  /** The JSON body in UTF-8; empty if a retention rule removed the message. */
  readonly body: Buffer;
}

/** The next event after a rev. */
interface NextEvent {
  /** Null: there is no event so far. */
  readonly event: EncodedEvent | null;
  /** The seq of the newest message at the time of the read. Events that are written later come after this message. */
  readonly headSeq: Seq;
}

/**
 * Bounds for one position (a conversation and a rev): a query reads at most 64 events there, and stops once their texts
 * exceed 128 KiB.
 */
const PAGE_LIMITS = { limit: 64, bytes: 128 * 1024 } as const;
/** The most positions (a conversation and a rev) that one query reads. */
const MAX_POSITIONS_PER_QUERY = 128;
/** The most bytes in the cache of all conversations: for each event, the bytes of its body and 500 bytes more. */
const CACHE_BYTES = 8 * 1024 * 1024;
const CACHE_ENTRY_OVERHEAD_BYTES = 500;
/** An event that was cached longer ago than this is read again: its message may have been changed meanwhile. */
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
  #isReading = false;
  #isFailing = false;

  /**
   * `witness`: records each event that is read, since a receiver may get the event before its notification reaches this
   * node.
   */
  constructor(pool: Pool, options: { createFileLink: CreateFileLink; witness: Witness; log: Log }) {
    this.#pool = pool;
    this.#createFileLink = options.createFileLink;
    this.#witness = options.witness;
    this.#log = options.log;
  }

  /**
   * Reads the next event after a rev. Its message is as it is now, or as it was at most a second ago. Rejects when the
   * database is unreachable.
   */
  next(conversationId: ConversationId, afterRev: Rev): Promise<NextEvent> {
    const known = this.#cache.get(keyOf(conversationId, afterRev));
    if (known !== undefined) return Promise.resolve(known);
    return new Promise((resolve, reject) => {
      this.#requests.push({ conversationId, afterRev, resolve, reject });
      if (!this.#isReading) void this.#drain();
    });
  }

  async #drain(): Promise<void> {
    this.#isReading = true;
    // Waits until all lanes that the same notification woke have called `next`: they do so in one turn of the event
    // loop.
    await new Promise(setImmediate);
    while (this.#requests.length > 0) await this.#queryOneBatch();
    this.#isReading = false;
  }

  async #queryOneBatch(): Promise<void> {
    const byPosition = Map.groupBy(this.#requests, ({ conversationId, afterRev }) => keyOf(conversationId, afterRev));
    const requestGroups = [...byPosition.values()].slice(0, MAX_POSITIONS_PER_QUERY);
    const takenRequests = new Set(requestGroups.flat());
    this.#requests = this.#requests.filter((request) => !takenRequests.has(request));
    try {
      const positions = requestGroups.map((group) => group[0]!);
      const pages = await this.#pool.run((sql) => readDeliveryEvents(sql, positions, PAGE_LIMITS));
      this.#isFailing = false;
      requestGroups.forEach((group, index) => this.#cacheAndResolve(group, pages[index]!));
    } catch (error) {
      if (!this.#isFailing) this.#log.warn('events cannot be read for reverse webhooks, repeating', { error });
      this.#isFailing = true;
      for (const request of requestGroups.flat()) request.reject(error);
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
    // The first event is not in the cache if it is too large for the cache. Then it is encoded a second time.
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
