/** From here on nothing is held back any more. */
const FULL_BATCH_OR_IN_FLIGHT = 256;

/**
 * How much a target may be given that has just come back from an outage: one request, then twice as many with each that
 * succeeds. It may have come back for all its senders at once.
 */
export class SlowStart {
  #maxBatchOrInFlight = FULL_BATCH_OR_IN_FLIGHT;

  /** The target answered again after an outage. */
  begin(): void {
    this.#maxBatchOrInFlight = 1;
  }

  /** A delivery succeeded. */
  grow(): void {
    if (this.#maxBatchOrInFlight < FULL_BATCH_OR_IN_FLIGHT) this.#maxBatchOrInFlight *= 2;
  }

  /** Messages of a batch, or requests in flight, at most. */
  get maxBatchOrInFlight(): number {
    return this.#maxBatchOrInFlight;
  }

  /** How long one that sends one message at a time rests before the next, in ms: a quarter of a second, then half of it. */
  get pacingMs(): number {
    return this.#maxBatchOrInFlight < FULL_BATCH_OR_IN_FLIGHT ? FULL_BATCH_OR_IN_FLIGHT / this.#maxBatchOrInFlight : 0;
  }
}
