import type { DeviceKind } from '../model/device.ts';
import type { DeviceId } from '../model/ids.ts';
import type { PushOutcome } from './vendors/vendor.ts';

export interface LastError {
  readonly category: string;
  /** The vendor's status, if it returned one. */
  readonly code: number | null;
  readonly at: Date;
}

/** The state of one vendor. */
export interface VendorReport {
  readonly kind: DeviceKind;
  /** False: the vendor is not configured, and nothing is queued for its devices. */
  readonly configured: boolean;
  /** Why nothing can be sent although the vendor is configured, for people; null: there is no problem. */
  readonly problem: string | null;
  /** Pending rows of all nodes; null: the database is unavailable. */
  readonly pending: number | null;
  /** Pending rows that are due. */
  readonly due: number | null;
  /** Age of the oldest pending row, in ms; null: nothing is pending, or it is unknown. */
  readonly oldestPendingMs: number | null;
  /** Pushes in flight of this node. Everything below is of this node too; the counts are since its start. */
  readonly inFlight: number;
  readonly sent: number;
  readonly failed: number;
  /** Devices that the vendor no longer knew. */
  readonly removed: number;
  readonly refused: number;
  readonly expired: number;
  readonly lastError: LastError | null;
  /** End of the pause because the vendor as a whole has a problem; null: pushes are sent. */
  readonly backoffUntil: Date | null;
}

/** The outcome of a test push. */
export interface TestedDevice {
  readonly deviceId: DeviceId;
  readonly kind: DeviceKind;
  readonly label: string | null;
  /**
   * `failed` with the category `not_configured` if the vendor is not configured, and `unusable` if it has a problem.
   */
  readonly outcome: PushOutcome;
}
