/** A slow start ends when the most messages in a batch, or requests in flight, have grown to this number. */
const FULL_BATCH_OR_IN_FLIGHT = 256;

/**
 * Limits the load of a target that has just recovered from an outage: one request at first, then twice as many after
 * each success. Otherwise all senders that find the target back would flood it at the same moment.
 */
export class SlowStart {
  #maxBatchOrInFlight = FULL_BATCH_OR_IN_FLIGHT;

  /** Must be called when the target answers again after an outage: begins with one request. */
  beginSlowStart(): void {
    this.#maxBatchOrInFlight = 1;
  }

  /** Must be called after each successful delivery: doubles the limit while the slow start lasts. */
  doubleLimit(): void {
    if (this.#maxBatchOrInFlight < FULL_BATCH_OR_IN_FLIGHT) this.#maxBatchOrInFlight *= 2;
  }

  /** The most messages in a batch, or requests in flight, that the slow start allows now. */
  get maxBatchOrInFlight(): number {
    return this.#maxBatchOrInFlight;
  }

  /**
   * Milliseconds that a lane with one message per request pauses before the next request: 256 at first, halved after
   * each success.
   */
  get pacingMs(): number {
    return this.#maxBatchOrInFlight < FULL_BATCH_OR_IN_FLIGHT ? FULL_BATCH_OR_IN_FLIGHT / this.#maxBatchOrInFlight : 0;
  }
}
