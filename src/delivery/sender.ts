import type { HttpAttemptOutcome, DeliveryClient } from '../outbound/delivery-client.ts';
import { PARTITIONS, type LaneRow } from '../storage/hooks/lanes.ts';
import { deliveryHeaders, lacksServerKey, MISSING_SERVER_KEY_FAILURE, type SigningKeys } from './headers.ts';
import type { Leases } from './leases.ts';
import type { AttemptResult } from './attempt-result.ts';
import type { Receiver } from './receivers/receiver.ts';
import type { DeliveryRequest } from './request-body-builder.ts';

/**
 * Why a request has no outcome. `cancelled`: the lane was stopped before the request was written. `unknown`: the
 * request was not sent for another reason, or may have been sent.
 */
export type NotSentOrUnknown = 'cancelled' | 'unknown';

/** Signs and sends the requests of one hook. */
export class Sender {
  readonly #row: LaneRow;
  readonly #keys: SigningKeys;
  readonly #client: DeliveryClient;
  readonly #leases: Leases;
  readonly #isLaneActive: () => boolean;
  readonly #markHookSlowOrQuick: (outcome: HttpAttemptOutcome) => void;
  readonly #receiver: Receiver | null;

  /**
   * `isLaneActive`: false while the lane is suspended or retired, so that it may send nothing. `markHookSlowOrQuick`:
   * called with each outcome.
   */
  constructor(
    row: LaneRow,
    keys: SigningKeys,
    deps: {
      readonly client: DeliveryClient;
      readonly leases: Leases;
      readonly isLaneActive: () => boolean;
      readonly markHookSlowOrQuick: (outcome: HttpAttemptOutcome) => void;
      /** Null: the hook uses Klatch's own format. */
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

  /** The epoch of the hook's partition, for a write at this moment; null when this node may not use its lease. */
  get usableLeaseEpoch(): number | null {
    return this.#leases.usableEpochOf(this.#row.id % PARTITIONS);
  }

  /**
   * `onWrite`: called in the same tick in which the request is written to its socket. Before that call no byte has
   * left.
   */
  async send(
    request: DeliveryRequest,
    deliveryId: string,
    onWrite: () => void = () => {},
  ): Promise<AttemptResult | NotSentOrUnknown> {
    let cancelled = false;
    const checkEpoch = (): number | null => {
      cancelled = !this.#isLaneActive();
      return cancelled ? null : this.usableLeaseEpoch;
    };
    // If the attempt fails before the request is written, this is the only check of the epoch.
    let epoch = checkEpoch();
    if (epoch === null) return cancelled ? 'cancelled' : 'unknown';
    const at = new Date();
    const { url, signature } = this.#row;
    if (lacksServerKey(this.#keys, signature))
      return { request, outcome: MISSING_SERVER_KEY_FAILURE, startedAt: at, leaseEpoch: epoch };
    const headers = deliveryHeaders(this.#keys, signature, {
      id: deliveryId,
      at,
      body: request.body,
      hops: request.hops,
    });
    // Checks the epoch again in the tick in which the request is written: a lane that lost its partition or was stopped
    // sends nothing.
    const beforeWrite = (): boolean => {
      epoch = checkEpoch();
      if (epoch !== null) onWrite();
      return epoch !== null;
    };
    const outcome = await (this.#receiver === null
      ? this.#client.post(url, headers, request.body, beforeWrite)
      : this.#receiver.post(headers, request.body, beforeWrite));
    if (cancelled) return 'cancelled';
    // The attempt says nothing about the receiver: the lease has lapsed, the HTTP client was stopped, or no connection
    // was free.
    if (epoch === null || (!outcome.delivered && outcome.category === null)) return 'unknown';
    this.#markHookSlowOrQuick(outcome);
    if (this.#receiver === null || !outcome.delivered) return { request, outcome, startedAt: at, leaseEpoch: epoch };
    // Posts the reply before the delivery is settled. If the node is killed in between, the message is delivered again,
    // and the reply's idempotency key prevents a second reply.
    const replyProblem = await this.#receiver.postReply(request, outcome);
    return replyProblem === 'unknown'
      ? 'unknown'
      : { request, outcome, startedAt: at, leaseEpoch: epoch, replyProblem };
  }
}
