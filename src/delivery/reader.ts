import type { ConversationId, Seq } from '../model/ids.ts';
import { readMessages, type LogMessage } from '../storage/lanes.ts';
import type { Pool } from '../storage/pool.ts';
import { deliveryBody } from './payload.ts';

/** A message with its body, made once for all the hooks of its group that read it together. */
export interface ReadyMessage extends LogMessage {
  readonly body: string;
}

/** What one lane holds in memory at most: this many messages, or the first that pass this many bytes of text. */
const WINDOW_MESSAGES = 64;
const WINDOW_BYTES = 128 * 1024;
/** Positions of one query. */
const MAX_POSITIONS = 128;

interface Request {
  readonly conversationId: ConversationId;
  readonly after: Seq;
  readonly resolve: (messages: readonly ReadyMessage[]) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Reads on for the lanes. Lanes that ask at the same time are answered by one query, and lanes at the same place of a
 * conversation by one reading.
 */
export class MessageReader {
  readonly #pool: Pool;
  #requests: Request[] = [];
  #reading = false;

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  /** The next messages after a seq, as they are now; empty when there are none. Rejects when the database is away. */
  read(conversationId: ConversationId, after: Seq): Promise<readonly ReadyMessage[]> {
    return new Promise((resolve, reject) => {
      this.#requests.push({ conversationId, after, resolve, reject });
      if (!this.#reading) void this.#drain();
    });
  }

  async #drain(): Promise<void> {
    this.#reading = true;
    // Lanes that were woken by the same word ask in the same turn of the event loop.
    await new Promise(setImmediate);
    while (this.#requests.length > 0) await this.#readSome();
    this.#reading = false;
  }

  async #readSome(): Promise<void> {
    const places = new Map<string, Request[]>();
    const later: Request[] = [];
    for (const request of this.#requests) {
      const key = `${request.conversationId}:${request.after}`;
      const same = places.get(key);
      if (same !== undefined) same.push(request);
      else if (places.size < MAX_POSITIONS) places.set(key, [request]);
      else later.push(request);
    }
    this.#requests = later;
    const groups = [...places.values()];
    try {
      const positions = groups.map(([first]) => first!);
      const bounds = { limit: WINDOW_MESSAGES, bytes: WINDOW_BYTES };
      const answers = await this.#pool.run((sql) => readMessages(sql, positions, bounds));
      groups.forEach((group, index) => {
        const { conversationId } = group[0]!;
        const messages = answers[index]!.map((m) => ({ ...m, body: deliveryBody(conversationId, m) }));
        for (const request of group) request.resolve(messages);
      });
    } catch (error) {
      for (const request of groups.flat()) request.reject(error);
    }
  }
}
