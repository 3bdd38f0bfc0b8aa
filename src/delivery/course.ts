import type { Seq } from '../model/ids.ts';
import type { Attempt } from '../outbound/delivery-client.ts';
import type { AttemptRecord, LaneProgress, Settlement } from '../storage/settlement.ts';
import type { Apart } from './apart.ts';
import type { DeliveryCounts } from './delivery-counts.ts';
import type { Ledger } from './ledger.ts';
import type { Sent } from './progress.ts';
import type { Ramp } from './ramp.ts';
import type { RequestReader } from './request.ts';
import type { RetrySchedule } from './retry.ts';
import type { Sender } from './sender.ts';
import type { LaneSlots } from './lane-slots.ts';

/** Why a lane stands still for a while. */
export interface Rest {
  readonly ms: number;
  /** True: the word of a new message does not end it. */
  readonly deaf: boolean;
}

/** In which order a lane sends. */
export interface Course {
  /** Whether there is anything to do now or later. */
  readonly hasWork: boolean;
  /** The head moved on while it runs. */
  wake(): void;
  /** Sends what may be sent until nothing is left (null) or there is something to wait for. */
  run(): Promise<Rest | null>;
}

/** What a lane lends to its course. */
export interface CourseParts {
  /** Messages of one request at most. */
  readonly batch: number;
  readonly schedule: RetrySchedule;
  readonly slots: LaneSlots;
  readonly requests: RequestReader;
  readonly sender: Sender;
  readonly ledger: Ledger;
  readonly apart: Apart;
  readonly ramp: Ramp;
  readonly counts: DeliveryCounts;
  readonly mayGo: () => boolean;
  /** The newest seq that the lane was told of. */
  readonly head: () => Seq;
  /** There is nothing to read behind this seq after all, when the lane was told of no more than `head` meanwhile. */
  readonly caughtUp: (at: Seq, head: Seq) => void;
  /** A target answered 410. True: the hook goes, or was changed; false: it could not be removed. */
  readonly unregister: (sent: Sent) => Promise<boolean>;
  /** Told of each failure that counts: for the log, and for the notice of a hook that is parked. */
  readonly failed: (outcome: Attempt, settlement: Settlement) => void;
  /** Told of what was thrown while other requests are under way; the lane rests after them. */
  readonly troubled: (error: unknown) => void;
  /** Told of each message that is given up. */
  readonly setAside: (message: AttemptRecord) => void;
}

/** Rest after something on our side failed (the database is away, the lease has lapsed, no connection was free). */
export const REST: Rest = { ms: 1_000, deaf: true };

/** Failures in a row that make an outage of it: what follows begins slowly. */
export const OUTAGE_FAILURES = 2;

/** Makes the ramp follow from what became of an attempt; true when an outage has ended with it. */
export function follow(ramp: Ramp, before: LaneProgress, delivered: boolean): boolean {
  if (!delivered) return false;
  const outage = before.failures >= OUTAGE_FAILURES;
  if (outage) ramp.begin();
  else ramp.grow();
  return outage;
}
