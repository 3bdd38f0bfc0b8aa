import type { HttpAttemptOutcome, DeliveryClient } from '../outbound/delivery-client.ts';
import { PARTITIONS, type LaneRow } from '../storage/hooks/lanes.ts';
import { deliveryHeaders, lacksServerKey, MISSING_SERVER_KEY_FAILURE, type SigningKeys } from './headers.ts';
import type { Leases } from './leases.ts';
import type { AttemptResult } from './attempt-result.ts';
import type { Receiver } from './receivers/receiver.ts';
import type { DeliveryRequest } from './request-body-builder.ts';

/** `cancelled`: the lane was told to stop before it was written; `unknown`: it could not be sent, or nobody knows. */
export type NotSentOrUnknown = 'cancelled' | 'unknown';

/** Sends the requests of one hook, signed as it asks. */
export class Sender {
  readonly #row: LaneRow;
  readonly #keys: SigningKeys;
  readonly #client: DeliveryClient;
  readonly #leases: Leases;
  readonly #isLaneActive: () => boolean;
  readonly #markHookSlowOrQuick: (outcome: HttpAttemptOutcome) => void;
  readonly #receiver: Receiver | null;

  /** `isLaneActive`: false from the moment on that nothing may be sent any more; `markHookSlowOrQuick` is told of each answer. */
  constructor(
    row: LaneRow,
    keys: SigningKeys,
    deps: {
      readonly client: DeliveryClient;
      readonly leases: Leases;
      readonly isLaneActive: () => boolean;
      readonly markHookSlowOrQuick: (outcome: HttpAttemptOutcome) => void;
      /** Null: the hook's format is ours. */
      readonly receiver: Receiver | null;
    },
  ) {
    this.#row = row;
    this.#keys = keys;
    this.#client = deps.client;
    this.#leases = deps.leases;
    this.#isLaneActive = deps.isLaneActive;
    this.#markHookSlowOrQuick = deps.markHookSlowOrQuick;
    this.#receiver = deps.receiver;
  }

  /** The lease's epoch for what is written now; null when the hook is not ours at this moment. */
  get epoch(): number | null {
    return this.#leases.usableEpochOf(this.#row.id % PARTITIONS);
  }

  /** `onWrite`: called in the tick in which it is written; until then nothing of it has left. */
  async send(
    request: DeliveryRequest,
    id: string,
    onWrite: () => void = () => {},
  ): Promise<AttemptResult | NotSentOrUnknown> {
    let cancelled = false;
    const checkEpoch = (): number | null => {
      cancelled = !this.#isLaneActive();
      return cancelled ? null : this.epoch;
    };
    // For an attempt that fails before anything is written this is the only time that is asked.
    let epoch = checkEpoch();
    if (epoch === null) return cancelled ? 'cancelled' : 'unknown';
    const at = new Date();
    const { url, signature } = this.#row;
    if (lacksServerKey(this.#keys, signature))
      return { request, outcome: MISSING_SERVER_KEY_FAILURE, startedAt: at, epoch };
    const headers = deliveryHeaders(this.#keys, signature, { id, at, body: request.body, hops: request.hops });
    // Asked again in the tick of the write: a lane that lost its partition, or was told to stop, sends nothing more.
    const beforeWrite = (): boolean => {
      epoch = checkEpoch();
      if (epoch !== null) onWrite();
      return epoch !== null;
    };
    const outcome = await (this.#receiver === null
      ? this.#client.post(url, headers, request.body, beforeWrite)
      : this.#receiver.post(headers, request.body, beforeWrite));
    if (cancelled) return 'cancelled';
    // Without a verdict: the lease has lapsed, the client was stopped, or no connection was free.
    if (epoch === null || (!outcome.delivered && outcome.category === null)) return 'unknown';
    this.#markHookSlowOrQuick(outcome);
    if (this.#receiver === null || !outcome.delivered) return { request, outcome, startedAt: at, epoch };
    // Before the delivery is settled: whoever is killed in between delivers again, and the reply's key is known then.
    const replyProblem = await this.#receiver.postReply(request, outcome);
    return replyProblem === 'unknown' ? 'unknown' : { request, outcome, startedAt: at, epoch, replyProblem };
  }
}
