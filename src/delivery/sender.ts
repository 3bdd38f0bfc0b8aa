import type { HttpAttemptOutcome, DeliveryClient } from '../outbound/delivery-client.ts';
import { PARTITIONS, type LaneRow } from '../storage/hooks/lanes.ts';
import { deliveryHeaders, lacksServerKey, MISSING_SERVER_KEY_FAILURE, type SigningKeys } from './headers.ts';
import type { Leases } from './leases.ts';
import type { AttemptResult } from './attempt-result.ts';
import type { Receiver } from './receivers/receiver.ts';
import type { DeliveryRequest } from './request-body-builder.ts';

/**
 * `cancelled`: the lane was stopped before the request was written. `unknown`: the request could not be sent, or its
 * outcome is unknown.
 */
export type NotSentOrUnknown = 'cancelled' | 'unknown';

/** Sends the requests of one hook, with the hook's kind of signature. */
export class Sender {
  readonly #row: LaneRow;
  readonly #keys: SigningKeys;
  readonly #client: DeliveryClient;
  readonly #leases: Leases;
  readonly #isLaneActive: () => boolean;
  readonly #markHookSlowOrQuick: (outcome: HttpAttemptOutcome) => void;
  readonly #receiver: Receiver | null;

  /** `isLaneActive`: false once nothing may be sent; `markHookSlowOrQuick`: called after each answer. */
  constructor(
    row: LaneRow,
    keys: SigningKeys,
    deps: {
      readonly client: DeliveryClient;
      readonly leases: Leases;
      readonly isLaneActive: () => boolean;
      readonly markHookSlowOrQuick: (outcome: HttpAttemptOutcome) => void;
      /** Null: the hook uses our own format. */
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

  /** The lease's epoch for a write at this moment; null when this node may not use the lease. */
  get epoch(): number | null {
    return this.#leases.usableEpochOf(this.#row.id % PARTITIONS);
  }

  /** `onWrite`: called in the tick in which the request is written; before that nothing has left. */
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
    // For an attempt that fails before the write, this is the only check.
    let epoch = checkEpoch();
    if (epoch === null) return cancelled ? 'cancelled' : 'unknown';
    const at = new Date();
    const { url, signature } = this.#row;
    if (lacksServerKey(this.#keys, signature))
      return { request, outcome: MISSING_SERVER_KEY_FAILURE, startedAt: at, epoch };
    const headers = deliveryHeaders(this.#keys, signature, { id, at, body: request.body, hops: request.hops });
    // Checks again in the tick of the write: a lane that lost its partition or was stopped sends nothing.
    const beforeWrite = (): boolean => {
      epoch = checkEpoch();
      if (epoch !== null) onWrite();
      return epoch !== null;
    };
    const outcome = await (this.#receiver === null
      ? this.#client.post(url, headers, request.body, beforeWrite)
      : this.#receiver.post(headers, request.body, beforeWrite));
    if (cancelled) return 'cancelled';
    // The attempt has no verdict: the lease has lapsed, the client was stopped, or no connection was free.
    if (epoch === null || (!outcome.delivered && outcome.category === null)) return 'unknown';
    this.#markHookSlowOrQuick(outcome);
    if (this.#receiver === null || !outcome.delivered) return { request, outcome, startedAt: at, epoch };
    // Posts the reply before the delivery is settled. If the node is killed in between, the message is delivered again,
    // and the reply's idempotency key prevents a second reply.
    const replyProblem = await this.#receiver.postReply(request, outcome);
    return replyProblem === 'unknown' ? 'unknown' : { request, outcome, startedAt: at, epoch, replyProblem };
  }
}
