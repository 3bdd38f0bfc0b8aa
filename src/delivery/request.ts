import type { Seq } from '../model/ids.ts';
import type { LaneRow } from '../storage/lanes.ts';
import { deliveryId } from './payload.ts';
import type { MessageReader, ReadyMessage } from './reader.ts';

/** What one request carries: a message, or a batch of them in `seq` order. */
export interface DeliveryRequest {
  readonly first: Seq;
  readonly last: Seq;
  readonly body: Buffer;
  readonly hops: number;
}

/** How much of the log one request may take. */
export interface RequestBounds {
  /** Messages, at most. */
  readonly messages: number;
  /** Where a range that was tried before ends: all of it is sent again and nothing else. */
  readonly last: Seq | null;
  /** True: what is behind it is hardly wanted soon, and not read yet. */
  readonly alone?: boolean;
}

/** What lies ahead of a cursor. */
export interface Ahead {
  /** Up to here there is nothing to send: these messages are left out. */
  readonly passed: Seq;
  /** Null when messages were left out, or there is nothing (yet). */
  readonly request: DeliveryRequest | null;
}

/** The contract's bound of a batch's body. */
export const MAX_BATCH_BYTES = 1024 * 1024;
/** Messages that are left out are passed over this many at a time. */
const MAX_LEFT_OUT = 500;

/** Makes a hook's requests out of the log. */
export class RequestReader {
  readonly #reader: MessageReader;
  readonly #row: LaneRow;

  constructor(reader: MessageReader, row: LaneRow) {
    this.#reader = reader;
    this.#row = row;
  }

  /** `webhook-id`: the same whenever this range is sent. */
  idOf({ first, last }: DeliveryRequest): string {
    return deliveryId(this.#row.id, this.#row.conversationId, first, last);
  }

  /** The next message, where that is all of a request and is known without asking the database. */
  ready(after: Seq): DeliveryRequest | null {
    if (this.#row.batch !== 1) return null;
    const message = this.#reader.peek(this.#row.conversationId, after);
    return message === undefined || this.leavesOut(message) ? null : single(message);
  }

  /** What comes after a seq, with its text as it is now. Rejects when the database is away. */
  async next(after: Seq, bounds: RequestBounds): Promise<Ahead> {
    let passed = after;
    const ahead = bounds.alone === true ? aheadOf(after, bounds) : undefined;
    let message = await this.#read(after, ahead);
    for (let n = 0; message !== null && this.leavesOut(message) && n < MAX_LEFT_OUT; n += 1) {
      passed = message.seq;
      // Beyond a fixed range lies what it never contained.
      if (bounds.last !== null && passed >= bounds.last) break;
      message = await this.#read(passed);
    }
    const isBeyond = message !== null && bounds.last !== null && message.seq > bounds.last;
    if (passed > after || message === null || isBeyond) return { passed, request: null };
    const isRange = bounds.last !== null && bounds.last > message.seq;
    if (this.#row.batch === 1 && !isRange) return { passed, request: single(message) };
    return { passed, request: await this.#batch(message, bounds) };
  }

  /** True for a message of a kind of sender that the hook does not want. */
  leavesOut(message: ReadyMessage): boolean {
    return message.senderKind !== 'user' && this.#row.skip.includes(message.senderKind);
  }

  async #batch(head: ReadyMessage, bounds: RequestBounds): Promise<DeliveryRequest> {
    const messages = [head];
    let bytes = head.body.length + 2;
    let leftOut = 0;
    for (let after = head.seq; after !== bounds.last && messages.length < bounds.messages;) {
      const message = await this.#read(after);
      if (message === null) break;
      after = message.seq;
      if (this.leavesOut(message)) {
        leftOut += 1;
        // What lies behind them is for the next request: this one has a slot in hand.
        if (leftOut > MAX_LEFT_OUT && bounds.last === null) break;
        continue;
      }
      bytes += message.body.length + 1;
      // A range that was sent before is sent whole.
      if (bytes > MAX_BATCH_BYTES && bounds.last === null) break;
      messages.push(message);
    }
    const parts = messages.flatMap((message, n) => [n === 0 ? OPEN : COMMA, message.body]);
    return {
      first: head.seq,
      last: bounds.last ?? messages.at(-1)!.seq,
      body: Buffer.concat([...parts, CLOSE]),
      hops: Math.max(...messages.map((message) => message.hops)),
    };
  }

  /** Only a read that is needed waits. */
  #read(after: Seq, ahead?: number): ReadyMessage | null | Promise<ReadyMessage | null> {
    const { conversationId } = this.#row;
    return this.#reader.peek(conversationId, after) ?? this.#reader.next(conversationId, after, ahead);
  }
}

const OPEN = Buffer.from('[');
const COMMA = Buffer.from(',');
const CLOSE = Buffer.from(']');

/** Messages that a request takes, as far as its bounds say. */
function aheadOf(after: Seq, { messages, last }: RequestBounds): number {
  return last === null ? messages : Math.max(1, last - after);
}

function single({ seq, body, hops }: ReadyMessage): DeliveryRequest {
  return { first: seq, last: seq, body, hops };
}
