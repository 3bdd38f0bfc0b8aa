import type { Rev, Seq } from '../../model/ids.ts';
import type { LanePosition } from '../attempt-result.ts';
import type { DeliveryRequest, RequestRangeBounds, RequestBodyBuilder } from '../request-body-builder.ts';
import type { EventBounds, EventRequestBuilder } from './event-request-builder.ts';

/** Bounds of one request of messages or events. */
export interface OrderedBounds extends RequestRangeBounds, Omit<EventBounds, 'resendRangeEnd' | 'maxAfterSeq'> {
  /** The end of a range of events that was tried before: the request sends exactly this range again. */
  readonly resendRangeEndRev: Rev | null;
}

/** The next request after a position. */
interface NextOrdered {
  /** The last skipped position; null: none was skipped. */
  readonly skippedTo: LanePosition | null;
  readonly request: DeliveryRequest | null;
}

const NOTHING: NextOrdered = { skippedTo: null, request: null };

/**
 * Messages and events in one order: each message is followed by the events that were written before the next message,
 * by rev.
 *
 * Why no message overtakes an event: both are written under the head's lock. A reader of a head with `last_seq` 42 sees
 * every event that comes before message 42. So one check for events covers all messages up to the head that the check
 * saw (`#messagesBeforeNextEvent`). A message beyond that head requires another check.
 */
export class OrderedRequests {
  readonly #messages: RequestBodyBuilder;
  readonly #events: EventRequestBuilder | null;
  /** The messages up to `toSeq` come before the first event after `eventCursor`. */
  #messagesBeforeNextEvent: { readonly eventCursor: Rev; readonly toSeq: Seq } | null = null;

  constructor(messages: RequestBodyBuilder, events: EventRequestBuilder | null) {
    this.#messages = messages;
    this.#events = events;
  }

  /** The next request, made without a query. Null if an event or a message that is not cached may come next. */
  peek(position: LanePosition): DeliveryRequest | null {
    return this.#isMessageNext(position) ? this.#messages.peek(position.cursor) : null;
  }

  /** The next request after a position, with current texts. Rejects when the database is unreachable. */
  async next(position: LanePosition, bounds: OrderedBounds): Promise<NextOrdered> {
    const { cursor, eventCursor } = position;
    if (!this.#isMessageNext(position)) {
      const { maxEvents, resendRangeEndRev } = bounds;
      const eventBounds = { maxEvents, resendRangeEnd: resendRangeEndRev, maxAfterSeq: cursor };
      const { skippedTo, request, nextEventAfterSeq } = await this.#events!.next(eventCursor!, eventBounds);
      if (request !== null) return { skippedTo: null, request };
      if (skippedTo > eventCursor!) return { skippedTo: { cursor, eventCursor: skippedTo }, request: null };
      this.#messagesBeforeNextEvent = { eventCursor: eventCursor!, toSeq: nextEventAfterSeq };
      if (nextEventAfterSeq <= cursor) return NOTHING;
    }
    const maxSeq = this.#messagesBeforeNextEvent === null ? {} : { maxSeq: this.#messagesBeforeNextEvent.toSeq };
    const { skippedTo, request } = await this.#messages.next(cursor, { ...bounds, ...maxSeq });
    return { skippedTo: skippedTo > cursor ? { cursor: skippedTo, eventCursor } : null, request };
  }

  /** Whether the next message comes before the next event. */
  #isMessageNext({ cursor, eventCursor }: LanePosition): boolean {
    if (this.#events === null) return true;
    return (
      this.#messagesBeforeNextEvent !== null &&
      this.#messagesBeforeNextEvent.eventCursor === eventCursor &&
      cursor < this.#messagesBeforeNextEvent.toSeq
    );
  }
}
