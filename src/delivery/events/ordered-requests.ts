import type { Rev, Seq } from '../../model/ids.ts';
import type { LanePosition } from '../attempt-result.ts';
import type { DeliveryRequest, RequestRangeBounds, MessageRequestBuilder } from '../request-body-builder.ts';
import type { EventBounds, EventRequestBuilder } from './event-request-builder.ts';

/** Bounds of one request of messages or events. */
export interface OrderedBounds extends RequestRangeBounds, Omit<EventBounds, 'resendRangeEnd' | 'maxAfterSeq'> {
  /**
   * Set when a failed batch of events is sent again: the last rev of that batch. The request then covers exactly the
   * same range.
   */
  readonly resendRangeEndRev: Rev | null;
}

/** What a lane does next after a position: send a request, skip messages or events, or wait. */
interface NextOrderedRequest {
  /** The position after the skipped messages or events; null: none was skipped. */
  readonly skippedTo: LanePosition | null;
  readonly request: DeliveryRequest | null;
}

const NOTHING: NextOrderedRequest = { skippedTo: null, request: null };

/**
 * Merges a hook's messages and events into one order. After each message come the events that were written before the
 * next message, by rev.
 *
 * Why no message overtakes an event: both are written under the head's lock. A reader of a head with `last_seq` 42 sees
 * every event that comes before message 42. So one check for events covers all messages up to the head that the check
 * saw (`#messagesBeforeNextEvent`). A message beyond that head requires another check.
 */
export class OrderedRequests {
  readonly #messages: MessageRequestBuilder;
  readonly #events: EventRequestBuilder | null;
  /** The messages up to `toSeq` come before the first event after `eventCursor`. */
  #messagesBeforeNextEvent: { readonly eventCursor: Rev; readonly toSeq: Seq } | null = null;

  constructor(messages: MessageRequestBuilder, events: EventRequestBuilder | null) {
    this.#messages = messages;
    this.#events = events;
  }

  /**
   * Builds the next request without a query. Null when that is not possible: the next message is not cached, or an
   * event may come first.
   */
  peek(position: LanePosition): DeliveryRequest | null {
    return this.#isMessageNext(position) ? this.#messages.peek(position.cursor) : null;
  }

  /**
   * Builds the next request after a position, with the current texts of the messages. Rejects when the database is
   * unreachable.
   */
  async next(position: LanePosition, bounds: OrderedBounds): Promise<NextOrderedRequest> {
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
