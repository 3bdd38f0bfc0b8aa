import type { Rev, Seq } from '../../model/ids.ts';
import type { LanePosition } from '../attempt-result.ts';
import type { DeliveryRequest, RequestRangeBounds, RequestBodyBuilder } from '../request-body-builder.ts';
import type { EventBounds, EventRequestBuilder } from './event-request-builder.ts';

/** How much one request may take, of messages or of events. */
export interface OrderedBounds extends RequestRangeBounds, Omit<EventBounds, 'resendRangeEnd' | 'maxAfterSeq'> {
  /** The same as `resendRangeEnd`, of events. */
  readonly resendRangeEndRev: Rev | null;
}

/** The next request after a position. */
interface NextOrdered {
  /** The last position that is left out; null: none is. */
  readonly skippedTo: LanePosition | null;
  readonly request: DeliveryRequest | null;
}

const NOTHING: NextOrdered = { skippedTo: null, request: null };

/**
 * Messages and events in one order: a message, the events that were written before the next one by rev, the next message.
 *
 * Why no message overtakes an event: both are written under the head's lock. A reader of a head with `last_seq` 42
 * sees every event that stands before message 42. So events are looked for once for all messages up to the head that the
 * look has seen (`#messagesBeforeNextEvent`), and a message beyond it is sent after another look only.
 */
export class OrderedRequests {
  readonly #messages: RequestBodyBuilder;
  readonly #events: EventRequestBuilder | null;
  /** Between this place among the events and the next event lie the messages up to `toSeq`. */
  #messagesBeforeNextEvent: { readonly eventCursor: Rev; readonly toSeq: Seq } | null = null;

  constructor(messages: RequestBodyBuilder, events: EventRequestBuilder | null) {
    this.#messages = messages;
    this.#events = events;
  }

  /** The next message, where that is all of a request and is known without asking the database. */
  peek(position: LanePosition): DeliveryRequest | null {
    return this.#isMessageNext(position) ? this.#messages.peek(position.cursor) : null;
  }

  /** The next request after a position, with texts as they are now. Rejects when the database is away. */
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
