import { LRUCache } from 'lru-cache';
import type { Log } from '../log.ts';
import type { ConversationId, Seq } from '../model/ids.ts';
import { readDeliveryMessages, type DeliveryMessage } from '../storage/hooks/lanes.ts';
import type { Pool } from '../storage/db/pool.ts';
import type { Witness } from '../storage/messages/witness.ts';
import { deliveryBody, type CreateFileLink } from './payload.ts';

/** A message with its body in UTF-8, encoded once for all hooks of its group. */
export interface EncodedMessage extends DeliveryMessage {
  readonly body: Buffer;
}

/**
 * Bounds for one position (a conversation and a seq): a query reads at most 64 messages there, and stops once their
 * texts exceed 128 KiB.
 */
const MAX_READ_AHEAD_MESSAGES = 64;
const READ_AHEAD_BYTES = 128 * 1024;
/** The most positions (a conversation and a seq) that one query reads. */
const MAX_POSITIONS_PER_QUERY = 128;
/** The most bytes in the cache of all conversations: for each message, the bytes of its body and 500 bytes more. */
const CACHE_BYTES = 32 * 1024 * 1024;
const CACHE_ENTRY_OVERHEAD_BYTES = 500;
/**
 * A message that was cached longer ago than this is read again: it may have been edited, and its links to files expire
 * some days after they were made.
 */
const CACHE_TTL_MS = 1_000;

interface ReadRequest {
  readonly conversationId: ConversationId;
  readonly after: Seq;
  readonly messagesToRead: number;
  readonly resolve: (message: EncodedMessage | null) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Reads messages for the lanes. One query answers all lanes that call in the same turn. For a second, the reader caches
 * the messages that it read ahead, in one bounded cache. Lanes do not cache, since thousands of them can wait for a
 * slow receiver.
 */
export class MessageReader {
  readonly #pool: Pool;
  readonly #createFileLink: CreateFileLink;
  readonly #witness: Witness;
  readonly #log: Log;
  readonly #cache = new LRUCache<string, EncodedMessage>({
    maxSize: CACHE_BYTES,
    sizeCalculation: (message) => message.body.length + CACHE_ENTRY_OVERHEAD_BYTES,
    ttl: CACHE_TTL_MS,
    ttlResolution: 50,
  });
  #requests: ReadRequest[] = [];
  #isReading = false;
  #isFailing = false;

  /**
   * `witness`: records each message that is read, since a receiver may get it before its notification reaches this
   * node.
   */
  constructor(pool: Pool, options: { createFileLink: CreateFileLink; witness: Witness; log: Log }) {
    this.#pool = pool;
    this.#createFileLink = options.createFileLink;
    this.#witness = options.witness;
    this.#log = options.log;
  }

  /** Returns the next message after a seq without a query; undefined if it is not cached. */
  peek(conversationId: ConversationId, after: Seq): EncodedMessage | undefined {
    return this.#cache.get(`${conversationId}:${after + 1}`);
  }

  /**
   * Reads the next message after a seq, as it is now or was at most a second ago; null when there is none. `readAhead`:
   * how many messages the caller may want, this one included. Rejects when the database is unreachable.
   */
  nextMessage(
    conversationId: ConversationId,
    after: Seq,
    readAhead = MAX_READ_AHEAD_MESSAGES,
  ): Promise<EncodedMessage | null> {
    const known = this.peek(conversationId, after);
    if (known !== undefined) return Promise.resolve(known);
    return new Promise((resolve, reject) => {
      this.#requests.push({
        conversationId,
        after,
        messagesToRead: Math.min(readAhead, MAX_READ_AHEAD_MESSAGES),
        resolve,
        reject,
      });
      if (!this.#isReading) void this.#drain();
    });
  }

  async #drain(): Promise<void> {
    this.#isReading = true;
    // Waits until all lanes that the same notification woke have called `nextMessage`: they do so in one turn of the
    // event loop.
    await new Promise(setImmediate);
    while (this.#requests.length > 0) await this.#queryOneBatch();
    this.#isReading = false;
  }

  async #queryOneBatch(): Promise<void> {
    const requestGroups = this.#takeRequestsByPosition();
    try {
      const positions = requestGroups.map((group) => {
        const { conversationId, after } = group[0]!;
        return { conversationId, after, limit: Math.max(...group.map((request) => request.messagesToRead)) };
      });
      const results = await this.#pool.run((sql) => readDeliveryMessages(sql, positions, READ_AHEAD_BYTES));
      this.#isFailing = false;
      requestGroups.forEach((group, index) => this.#cacheAndResolve(group, results[index]!));
    } catch (error) {
      if (!this.#isFailing) this.#log.warn('messages cannot be read for forwarding, repeating', { error });
      this.#isFailing = true;
      for (const request of requestGroups.flat()) request.reject(error);
    }
  }

  /** Takes the waiting requests for as many positions as one query reads, grouped by position. */
  #takeRequestsByPosition(): ReadRequest[][] {
    const byPosition = new Map<string, ReadRequest[]>();
    const later: ReadRequest[] = [];
    for (const request of this.#requests) {
      const key = `${request.conversationId}:${request.after}`;
      const samePositionRequests = byPosition.get(key);
      if (samePositionRequests !== undefined) samePositionRequests.push(request);
      else if (byPosition.size < MAX_POSITIONS_PER_QUERY) byPosition.set(key, [request]);
      else later.push(request);
    }
    this.#requests = later;
    return [...byPosition.values()];
  }

  #cacheAndResolve(group: readonly ReadRequest[], messages: readonly DeliveryMessage[]): void {
    const { conversationId } = group[0]!;
    const last = messages.at(-1);
    if (last !== undefined) this.#witness.recordMessage(conversationId, last.seq, last.sentAt.getTime());
    const encoded = messages.map((message) => {
      return { ...message, body: Buffer.from(deliveryBody(conversationId, message, this.#createFileLink)) };
    });
    for (const message of encoded) this.#cache.set(`${conversationId}:${message.seq}`, message);
    for (const request of group) request.resolve(encoded[0] ?? null);
  }
}
