import type { LogEpoch, Rev, Seq } from '../model/ids.ts';
import type { LaneRow } from '../storage/hooks/lanes.ts';
import type { AttemptRecord } from '../storage/hooks/settlement.ts';
import { deliveryId } from './payload.ts';
import type { MessageReader, EncodedMessage } from './message-reader.ts';
import { LoopDetector } from './loops/loop-detector.ts';
import type { Receiver } from './receivers/receiver.ts';

/** One request: a message or a batch in `seq` order, or an event or a batch in `rev` order. */
export interface DeliveryRequest {
  /**
   * The first message and, in `last`, the last one. For events: the messages that the first and the last event changed.
   */
  readonly first: Seq;
  readonly last: Seq;
  /** Set for events; 0 and null for messages. */
  readonly rev: Rev | 0;
  readonly lastRev: Rev | null;
  /** The rev of each event in the request; revs have gaps. */
  readonly revs: readonly Rev[];
  /** The log epoch of all messages or events in the request. */
  readonly logEpoch: LogEpoch;
  readonly body: Buffer;
  readonly hops: number;
}

/** Bounds of the part of the log that one request may take. */
export interface RequestRangeBounds {
  /** Messages, at most. */
  readonly maxMessages: number;
  /** The end of a range that was tried before: the request sends exactly this range again. */
  readonly resendRangeEnd: Seq | null;
  /** The last message that the request may hold: an event comes after it. */
  readonly maxSeq?: Seq;
  /** True: the lane will hardly need later messages soon, so they are not read yet. */
  readonly noReadAhead?: boolean;
}

/** The next step after a cursor. */
export interface NextRequestOrSkip {
  /** The hook skips all messages up to here. */
  readonly skippedTo: Seq;
  /** Null when messages were skipped, or when there is no message to send so far. */
  readonly request: DeliveryRequest | null;
  /** True: a retention rule removed the next message, and the hook's row has to be read again. */
  readonly isNextMessageRemoved?: boolean;
}

/** The contract's bound of a batch's body. */
export const MAX_BATCH_BYTES = 1024 * 1024;
/** Messages or events that one step skips at most. */
export const MAX_SKIPPED = 500;

/** The receiver of a hook with another product's format, whose requests hold one message each. */
interface ForeignReceiver {
  readonly receiver: Receiver;
  /** Called for messages that are too old for the receiver, with their record for the delivery log. */
  readonly onTooOld: (record: AttemptRecord) => void;
}

/** Makes a hook's requests out of the log. */
export class RequestBodyBuilder {
  /** Created with the first message of a webhook. */
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

  /** `webhook-id`: the same whenever this range is sent. */
  idOf(request: DeliveryRequest): string {
    return deliveryId(this.#row.id, this.#row.conversationId, request);
  }

  /**
   * The next request, made without a query. Null for a hook with batches, or if the next message is not cached or not
   * sent.
   */
  peek(after: Seq): DeliveryRequest | null {
    if (this.#row.batch !== 1) return null;
    const message = this.#reader.peek(this.#row.conversationId, after);
    return message === undefined || this.#isPassedOver(message) ? null : this.#single(message);
  }

  /** The next request after a seq, with current texts. Rejects when the database is unreachable. */
  async next(after: Seq, bounds: RequestRangeBounds): Promise<NextRequestOrSkip> {
    let skippedTo = after;
    const readAhead = bounds.noReadAhead === true ? readAheadOf(after, bounds) : undefined;
    let message = await this.#read(after, readAhead);
    // A retention rule removed messages here. The hook's row must first record, with a notice, that the hook continues
    // after the gap (`skipRemovedMessages`).
    if (message !== null && message.seq > after + 1) return { skippedTo, request: null, isNextMessageRemoved: true };
    let tooOldFrom: Seq | null = null;
    let tooOldTo = after;
    for (let n = 0; message !== null && this.#isPassedOver(message) && n < MAX_SKIPPED; n += 1) {
      skippedTo = message.seq;
      if (this.#isOnlyTooOld(message)) {
        tooOldFrom ??= skippedTo;
        tooOldTo = skippedTo;
      }
      // A request for a fixed range skips no messages after the range.
      if (bounds.resendRangeEnd !== null && skippedTo >= bounds.resendRangeEnd) break;
      message = await this.#read(skippedTo);
    }
    if (tooOldFrom !== null) this.#foreign!.onTooOld(tooOldRecord(tooOldFrom, tooOldTo));
    const isPastEnd = message !== null && bounds.resendRangeEnd !== null && message.seq > bounds.resendRangeEnd;
    if (skippedTo > after || message === null || isPastEnd) return { skippedTo, request: null };
    const isRange = bounds.resendRangeEnd !== null && bounds.resendRangeEnd > message.seq;
    const isSingle = this.#foreign !== null || (this.#row.batch === 1 && !isRange);
    if (isSingle) return { skippedTo, request: this.#single(message) };
    const request = await this.#batch(message, bounds);
    return request === null ? { skippedTo, request, isNextMessageRemoved: true } : { skippedTo, request };
  }

  #single(message: EncodedMessage): DeliveryRequest {
    this.#observeLoop(message);
    const { seq, logEpoch, hops } = message;
    const body = this.#foreign === null ? message.body : this.#foreign.receiver.encode(message);
    return { ...NO_EVENTS, first: seq, last: seq, logEpoch, body, hops };
  }

  #observeLoop({ senderKind, sentAt }: EncodedMessage): void {
    if (senderKind !== 'webhook') return;
    this.#loopDetector ??= new LoopDetector();
    this.#loopDetector.observe(sentAt.getTime(), this.#nowMs());
  }

  /**
   * True for a message that the hook does not want: because of its sender or, in another product's format, also for
   * other reasons.
   */
  #isPassedOver(message: EncodedMessage): boolean {
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
   * Builds a batch that begins with `head`. Null: a retention rule removed messages of the batch while they were read.
   */
  async #batch(head: EncodedMessage, bounds: RequestRangeBounds): Promise<DeliveryRequest | null> {
    const messages = [head];
    let bytes = head.body.length + 2;
    let skipped = 0;
    const end = bounds.resendRangeEnd ?? bounds.maxSeq ?? null;
    let { resendRangeEnd } = bounds;
    for (let after = head.seq; after !== end && messages.length < bounds.maxMessages;) {
      const message = await this.#read(after);
      if (message === null) break;
      if (message.seq > after + 1) return null;
      // Messages of another log epoch get a request of their own, whatever range was tried before.
      if (message.logEpoch !== head.logEpoch) {
        resendRangeEnd = null;
        break;
      }
      after = message.seq;
      if (this.#isPassedOver(message)) {
        skipped += 1;
        // Leaves the rest to the next request: this one already holds a slot.
        if (skipped > MAX_SKIPPED && bounds.resendRangeEnd === null) break;
        continue;
      }
      bytes += message.body.length + 1;
      // A range that was sent before is sent whole.
      if (bytes > MAX_BATCH_BYTES && bounds.resendRangeEnd === null) break;
      messages.push(message);
    }
    for (const message of messages) this.#observeLoop(message);
    return {
      ...NO_EVENTS,
      first: head.seq,
      last: resendRangeEnd ?? messages.at(-1)!.seq,
      logEpoch: head.logEpoch,
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

/** The body of a batch. */
export function joinBodies(bodies: readonly Buffer[]): Buffer {
  return Buffer.concat([...bodies.flatMap((body, n) => [n === 0 ? OPEN : COMMA, body]), CLOSE]);
}

/** The number of messages to read, according to the bounds. */
function readAheadOf(after: Seq, { maxMessages: messages, resendRangeEnd: last }: RequestRangeBounds): number {
  return last === null ? messages : Math.max(1, last - after);
}

/** The delivery log's record of messages that the hook skipped because of their age. */
function tooOldRecord(firstSeq: Seq, lastSeq: Seq): AttemptRecord {
  const noAttempt = { attempt: 0, outcome: 'skipped', category: 'too old', code: null, durationMs: 0 } as const;
  return { ...noAttempt, firstSeq, lastSeq, rev: 0, lastRev: null, at: new Date() };
}
