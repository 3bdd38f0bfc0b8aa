import type { LogEpoch, Rev, Seq } from '../model/ids.ts';
import type { LaneRow } from '../storage/hooks/lanes.ts';
import type { AttemptRecord } from '../storage/hooks/settlement.ts';
import { deliveryId } from './payload.ts';
import type { MessageReader, EncodedMessage } from './message-reader.ts';
import { LoopDetector } from './loops/loop-detector.ts';
import type { Receiver } from './receivers/receiver.ts';

/** One request to a receiver. It has one message or several in `seq` order, or one event or several in `rev` order. */
export interface DeliveryRequest {
  /**
   * The seq of the first message, and of the last one in `last`. For events: the seqs of the messages that the first
   * and the last event changed.
   */
  readonly first: Seq;
  readonly last: Seq;
  /** The revs of the first and the last event; 0 and null in a request of messages. */
  readonly rev: Rev | 0;
  readonly lastRev: Rev | null;
  /** The rev of each event in the request. They may have gaps, so `rev` and `lastRev` do not determine them. */
  readonly revs: readonly Rev[];
  /** The log epoch of all messages or events in the request. */
  readonly logEpoch: LogEpoch;
  readonly body: Buffer;
  readonly hops: number;
}

/** Bounds of the part of the log that one request may take. */
export interface RequestRangeBounds {
  readonly maxMessages: number;
  /**
   * Set when a failed request is sent again: the last seq of its range. The request then covers exactly the same range.
   */
  readonly resendRangeEnd: Seq | null;
  /** The seq of the last message that the request may have, since an event comes after it. */
  readonly maxSeq?: Seq;
  /** True: reads no messages beyond this request, since the lane hardly needs them soon. */
  readonly noReadAhead?: boolean;
}

/** What a lane does next after a cursor: send a request, skip messages, or wait. */
export interface NextRequestOrSkip {
  /** The seq of the last message that the hook skips; the cursor if it skips none. */
  readonly skippedTo: Seq;
  /** Null when messages were skipped, or when there is no message to send so far. */
  readonly request: DeliveryRequest | null;
  /** True: a retention rule removed the next message, and the hook's row has to be read again. */
  readonly isNextMessageRemoved?: boolean;
}

/** The largest body of a batch, in bytes (docs/reverse-webhooks.md). */
export const MAX_BATCH_BYTES = 1024 * 1024;
/** The most messages or events that a lane skips before it writes its cursor. */
export const MAX_SKIPPED_PER_REQUEST = 500;

/** The receiver of a hook with another product's format, whose requests hold one message each. */
interface ForeignReceiver {
  readonly receiver: Receiver;
  /** Called for messages that are too old for the receiver, with their record for the delivery log. */
  readonly onTooOld: (record: AttemptRecord) => void;
}

/** Makes a hook's requests out of the log. */
export class MessageRequestBuilder {
  /** Null until the first message from the group's webhook is sent. */
  #loopDetector: LoopDetector | null = null;
  readonly #reader: MessageReader;
  readonly #row: LaneRow;
  readonly #foreign: ForeignReceiver | null;
  readonly #nowMs: () => number;

  constructor(reader: MessageReader, row: LaneRow, foreign: ForeignReceiver | null = null, nowMs = Date.now) {
    this.#reader = reader;
    this.#row = row;
    this.#foreign = foreign;
    this.#nowMs = nowMs;
  }

  /** Whether the receiver seems to answer posts of the group's webhook with further posts. */
  isLoop(nowMs: number): boolean {
    return this.#loopDetector?.isLoop(nowMs) ?? false;
  }

  /** The header `webhook-id`, which is the same whenever this range is sent. */
  idOf(request: DeliveryRequest): string {
    return deliveryId(this.#row.id, this.#row.conversationId, request);
  }

  /**
   * Builds the next request without a query. Null for a hook with batches, or if the next message is not cached or the
   * hook skips it.
   */
  peek(after: Seq): DeliveryRequest | null {
    if (this.#row.batch !== 1) return null;
    const message = this.#reader.peek(this.#row.conversationId, after);
    return message === undefined || this.#isSkipped(message) ? null : this.#buildSingleRequest(message);
  }

  /**
   * Builds the next request after a seq, with the current texts of the messages. Rejects when the database is
   * unreachable.
   */
  async next(after: Seq, bounds: RequestRangeBounds): Promise<NextRequestOrSkip> {
    let skippedTo = after;
    const readAhead = bounds.noReadAhead === true ? readAheadOf(after, bounds) : undefined;
    let message = await this.#read(after, readAhead);
    // A retention rule removed messages here. The hook's row must first record, with a notice, that the hook continues
    // after the gap (`skipRemovedMessages`).
    if (message !== null && message.seq > after + 1) return { skippedTo, request: null, isNextMessageRemoved: true };
    let tooOldFrom: Seq | null = null;
    let tooOldTo = after;
    for (let n = 0; message !== null && this.#isSkipped(message) && n < MAX_SKIPPED_PER_REQUEST; n += 1) {
      skippedTo = message.seq;
      if (this.#isOnlyTooOld(message)) {
        tooOldFrom ??= skippedTo;
        tooOldTo = skippedTo;
      }
      // If a failed request is sent again, messages after its range are not skipped here.
      if (bounds.resendRangeEnd !== null && skippedTo >= bounds.resendRangeEnd) break;
      message = await this.#read(skippedTo);
    }
    if (tooOldFrom !== null) this.#foreign!.onTooOld(tooOldRecord(tooOldFrom, tooOldTo));
    const isPastEnd = message !== null && bounds.resendRangeEnd !== null && message.seq > bounds.resendRangeEnd;
    if (skippedTo > after || message === null || isPastEnd) return { skippedTo, request: null };
    const isRange = bounds.resendRangeEnd !== null && bounds.resendRangeEnd > message.seq;
    const isSingle = this.#foreign !== null || (this.#row.batch === 1 && !isRange);
    if (isSingle) return { skippedTo, request: this.#buildSingleRequest(message) };
    const request = await this.#buildBatchRequest(message, bounds);
    return request === null ? { skippedTo, request, isNextMessageRemoved: true } : { skippedTo, request };
  }

  #buildSingleRequest(message: EncodedMessage): DeliveryRequest {
    this.#observeLoop(message);
    const { seq, logEpoch, hops } = message;
    const body = this.#foreign === null ? message.body : this.#foreign.receiver.encode(message);
    return { ...NO_EVENTS, first: seq, last: seq, logEpoch, body, hops };
  }

  #observeLoop({ senderKind, sentAt }: EncodedMessage): void {
    if (senderKind !== 'webhook') return;
    this.#loopDetector ??= new LoopDetector();
    this.#loopDetector.observeDelivery(sentAt.getTime(), this.#nowMs());
  }

  /**
   * True for a message that the hook skips: because of its sender or, in the format of another product, also if it is
   * deleted, too old or without a trigger.
   */
  #isSkipped(message: EncodedMessage): boolean {
    if (this.#isUnwantedSenderKind(message)) return true;
    if (this.#foreign === null) return false;
    const { receiver } = this.#foreign;
    return !receiver.takes(message) || receiver.isTooOld(message);
  }

  /** Whether age is the only reason for skipping this message. */
  #isOnlyTooOld(message: EncodedMessage): boolean {
    if (this.#foreign === null || this.#isUnwantedSenderKind(message)) return false;
    return this.#foreign.receiver.takes(message);
  }

  #isUnwantedSenderKind({ senderKind }: EncodedMessage): boolean {
    return senderKind !== 'user' && this.#row.skip.includes(senderKind);
  }

  /**
   * Builds a batch that begins with `firstMessage`. Null: a retention rule removed messages of the batch while they
   * were read.
   */
  async #buildBatchRequest(firstMessage: EncodedMessage, bounds: RequestRangeBounds): Promise<DeliveryRequest | null> {
    const messages = [firstMessage];
    let bytes = firstMessage.body.length + 2;
    let skippedCount = 0;
    const end = bounds.resendRangeEnd ?? bounds.maxSeq ?? null;
    let { resendRangeEnd } = bounds;
    for (let after = firstMessage.seq; after !== end && messages.length < bounds.maxMessages;) {
      const message = await this.#read(after);
      if (message === null) break;
      if (message.seq > after + 1) return null;
      // No request spans two log epochs, even if a failed batch that is sent again becomes shorter by that.
      if (message.logEpoch !== firstMessage.logEpoch) {
        resendRangeEnd = null;
        break;
      }
      after = message.seq;
      if (this.#isSkipped(message)) {
        skippedCount += 1;
        // After many skipped messages the batch ends, although more fit: it holds a slot, and must not read the log for
        // long.
        if (skippedCount > MAX_SKIPPED_PER_REQUEST && bounds.resendRangeEnd === null) break;
        continue;
      }
      bytes += message.body.length + 1;
      // The byte bound does not apply to a failed batch, which is sent again as a whole.
      if (bytes > MAX_BATCH_BYTES && bounds.resendRangeEnd === null) break;
      messages.push(message);
    }
    for (const message of messages) this.#observeLoop(message);
    return {
      ...NO_EVENTS,
      first: firstMessage.seq,
      last: resendRangeEnd ?? messages.at(-1)!.seq,
      logEpoch: firstMessage.logEpoch,
      body: joinBodies(messages.map((message) => message.body)),
      hops: Math.max(...messages.map((message) => message.hops)),
    };
  }

  /** Reads the next message after a seq; returns it synchronously if it is cached. */
  #read(after: Seq, readAhead?: number): EncodedMessage | null | Promise<EncodedMessage | null> {
    const { conversationId } = this.#row;
    return this.#reader.peek(conversationId, after) ?? this.#reader.nextMessage(conversationId, after, readAhead);
  }
}

const NO_EVENTS = { rev: 0, lastRev: null, revs: [] } as const;
const OPEN = Buffer.from('[');
const COMMA = Buffer.from(',');
const CLOSE = Buffer.from(']');

/** The body of a batch: a JSON array of the bodies. */
export function joinBodies(bodies: readonly Buffer[]): Buffer {
  return Buffer.concat([...bodies.flatMap((body, n) => [n === 0 ? OPEN : COMMA, body]), CLOSE]);
}

/** The number of messages that a request within these bounds can have. */
function readAheadOf(after: Seq, { maxMessages: messages, resendRangeEnd: last }: RequestRangeBounds): number {
  return last === null ? messages : Math.max(1, last - after);
}

/** The delivery log's row for messages that the hook skipped because of their age. */
function tooOldRecord(firstSeq: Seq, lastSeq: Seq): AttemptRecord {
  const noAttempt = { attempt: 0, outcome: 'skipped', category: 'too old', code: null, durationMs: 0 } as const;
  return { ...noAttempt, firstSeq, lastSeq, rev: 0, lastRev: null, at: new Date() };
}
