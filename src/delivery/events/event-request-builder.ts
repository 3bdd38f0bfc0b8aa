import type { Rev, Seq } from '../../model/ids.ts';
import type { LaneRow } from '../../storage/hooks/lanes.ts';
import { joinBodies, MAX_BATCH_BYTES, MAX_SKIPPED_PER_REQUEST, type DeliveryRequest } from '../request-body-builder.ts';
import type { EncodedEvent, EventReader } from './event-reader.ts';

/** Bounds of one request of events. */
export interface EventBounds {
  readonly maxEvents: number;
  /**
   * Set when a failed batch is sent again: the last rev of that batch. The request then covers exactly the same range.
   */
  readonly resendRangeEnd: Rev | null;
  /** The seq of the newest message that the hook has received. An event with a greater `afterSeq` waits. */
  readonly maxAfterSeq: Seq;
}

/** What a lane does next with the events after a rev: send a request, skip events, or wait. */
interface NextEventRequest {
  /** The rev of the last event that the hook skips; the rev after which it searched if it skips none. */
  readonly skippedTo: Rev;
  readonly request: DeliveryRequest | null;
  /** If nothing is sent or skipped: the lane may send messages up to this seq before the next event. */
  readonly nextEventAfterSeq: Seq;
}

/**
 * Builds the requests for the events that a hook asks for. Remembers that no event is left, so that the lane need not
 * query again.
 */
export class EventRequestBuilder {
  readonly #reader: EventReader;
  readonly #row: LaneRow;
  /**
   * The rev after which the last query found no event, if no notification has come since then. Null: there may be
   * events.
   */
  #exhaustedAfterRev: Rev | null;
  #wakeups = 0;

  constructor(reader: EventReader, row: LaneRow) {
    this.#reader = reader;
    this.#row = row;
    this.#exhaustedAfterRev = row.hasPendingEvents ? null : row.eventCursor;
  }

  /** Must be called when a notification has announced an event that the builder has not read yet. */
  onEventAnnounced(): void {
    this.#wakeups += 1;
    this.#exhaustedAfterRev = null;
  }

  /** False: as far as this node knows from notifications, no event comes after this rev. */
  mayHaveEventsAfter(rev: Rev): boolean {
    return this.#exhaustedAfterRev === null || rev < this.#exhaustedAfterRev;
  }

  /**
   * Builds the next request after a rev, with the current texts of the messages. Rejects when the database is
   * unreachable.
   */
  async next(afterRev: Rev, bounds: EventBounds): Promise<NextEventRequest> {
    let skippedTo = afterRev;
    for (let n = 0; n < MAX_SKIPPED_PER_REQUEST; n += 1) {
      const { event, headSeq } = await this.#read(skippedTo);
      const isPastEnd = bounds.resendRangeEnd !== null && (event === null || event.rev > bounds.resendRangeEnd);
      // The rest of the failed batch is gone: its events have expired since the failed attempt.
      if (isPastEnd) return { skippedTo: bounds.resendRangeEnd, request: null, nextEventAfterSeq: headSeq };
      if (event === null) return { skippedTo, request: null, nextEventAfterSeq: headSeq };
      const isWaiting = event.afterSeq > bounds.maxAfterSeq;
      if (isWaiting) return { skippedTo, request: null, nextEventAfterSeq: event.afterSeq };
      if (!this.#isSkipped(event)) {
        if (skippedTo > afterRev) break;
        return { skippedTo, request: await this.#buildRequest(event, bounds), nextEventAfterSeq: event.afterSeq };
      }
      skippedTo = event.rev;
    }
    return { skippedTo, request: null, nextEventAfterSeq: bounds.maxAfterSeq };
  }

  async #buildRequest(firstEvent: EncodedEvent, bounds: EventBounds): Promise<DeliveryRequest> {
    const isSingle = this.#row.batch === 1 && bounds.resendRangeEnd === null;
    const { events, resendRangeEnd } = isSingle
      ? { events: [firstEvent], resendRangeEnd: null }
      : await this.#collect(firstEvent, bounds);
    const bodies = events.map(({ body }) => body);
    const isRange = this.#row.batch > 1 || (bounds.resendRangeEnd !== null && bounds.resendRangeEnd > firstEvent.rev);
    const last = events.at(-1)!;
    return {
      first: firstEvent.seq,
      last: last.seq,
      rev: firstEvent.rev,
      lastRev: resendRangeEnd ?? last.rev,
      revs: events.map(({ rev }) => rev),
      logEpoch: firstEvent.logEpoch,
      body: isRange ? joinBodies(bodies) : firstEvent.body,
      hops: Math.max(...events.map(({ hops }) => hops)),
    };
  }

  async #collect(
    firstEvent: EncodedEvent,
    { maxEvents, resendRangeEnd, maxAfterSeq }: EventBounds,
  ): Promise<{ events: EncodedEvent[]; resendRangeEnd: Rev | null }> {
    const events = [firstEvent];
    let bytes = firstEvent.body.length + 2;
    let skippedCount = 0;
    for (let after = firstEvent.rev; after !== resendRangeEnd && events.length < maxEvents;) {
      const { event } = await this.#read(after);
      if (event === null || (resendRangeEnd !== null && event.rev > resendRangeEnd)) break;
      // In two cases the request must end before this event. So it does not cover the whole range of a failed batch:
      // - The event has another log epoch.
      // - The hook has not received the message that comes before the event.
      if (event.logEpoch !== firstEvent.logEpoch || event.afterSeq > maxAfterSeq)
        return { events, resendRangeEnd: null };
      after = event.rev;
      if (this.#isSkipped(event)) {
        skippedCount += 1;
        // After many skipped events the batch ends, although more events fit: otherwise it could read the log for long.
        // A failed batch is sent again as a whole, also if its hook wants fewer events now.
        if (skippedCount > MAX_SKIPPED_PER_REQUEST && resendRangeEnd === null) break;
        continue;
      }
      bytes += event.body.length + 1;
      // The byte bound does not apply to a failed batch, which is sent again as a whole.
      if (bytes > MAX_BATCH_BYTES && resendRangeEnd === null) break;
      events.push(event);
    }
    return { events, resendRangeEnd };
  }

  async #read(afterRev: Rev): ReturnType<EventReader['next']> {
    const wakeups = this.#wakeups;
    const next = await this.#reader.next(this.#row.conversationId, afterRev);
    // A notification during the read may have announced an event that the read did not see. So the builder remembers
    // "no event" only if no notification came.
    if (next.event === null && wakeups === this.#wakeups) this.#exhaustedAfterRev = afterRev;
    return next;
  }

  /**
   * True for events that the hook does not want:
   * - by their kind,
   * - by the kind of the account that made the change,
   * - because they are older than the hook.
   *
   * Also true when a retention rule removed the message.
   */
  #isSkipped({ rev, seq, kind, actorKind, body }: EncodedEvent): boolean {
    const { events, skip, startAfterSeq, eventStartAfterRev } = this.#row;
    if (body.length === 0) return true;
    if (seq <= startAfterSeq || eventStartAfterRev === null || rev <= eventStartAfterRev || !events.includes(kind))
      return true;
    return actorKind !== 'user' && skip.includes(actorKind);
  }
}
