import type { DeviceKind } from '../model/device.ts';
import type { DeviceId } from '../model/ids.ts';
import type { PushOutcome } from './vendors/vendor.ts';

export interface LastError {
  readonly category: string;
  /** The status of the vendor's answer; null: there was no answer. */
  readonly code: number | null;
  readonly at: Date;
}

/** The state of one vendor. */
export interface VendorReport {
  readonly kind: DeviceKind;
  /** False: the vendor is not configured, so no pushes are queued for its devices. */
  readonly configured: boolean;
  /** Why no push can be sent although the vendor is configured, as a sentence for people; null: there is no problem. */
  readonly problem: string | null;
  /** The number of pending pushes of all nodes; null: the database is unavailable. */
  readonly pending: number | null;
  /** The number of pending pushes that are due; null: the database is unavailable. */
  readonly due: number | null;
  /** The age of the oldest pending push, in milliseconds; null: none is pending, or the database is unavailable. */
  readonly oldestPendingMs: number | null;
  /**
   * The number of this node's pushes in flight. All values below are of this node too; the counts are since its start.
   */
  readonly inFlight: number;
  readonly sent: number;
  readonly failed: number;
  /** Devices that this server removed, since the vendor no longer knew them. */
  readonly removed: number;
  readonly refused: number;
  readonly expired: number;
  readonly lastError: LastError | null;
  /**
   * The end of the pause in which no pushes are sent, since the vendor as a whole has a problem; null: there is no
   * pause.
   */
  readonly backoffUntil: Date | null;
}

/** The outcome of a test push. */
export interface TestedDevice {
  readonly deviceId: DeviceId;
  readonly kind: DeviceKind;
  readonly label: string | null;
  /**
   * `failed`, with the category `not_configured` if the vendor is not configured, or `unusable` if its configuration
   * has a problem.
   */
  readonly outcome: PushOutcome;
}
