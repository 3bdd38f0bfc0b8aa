import type { DeviceKind } from '../model/device.ts';
import type { DeviceId } from '../model/ids.ts';
import type { PushOutcome } from './vendors/vendor.ts';

/** What went wrong last with a vendor. */
export interface LastError {
  readonly category: string;
  /** The vendor's status, where it gave one. */
  readonly code: number | null;
  readonly at: Date;
}

/** How pushes through one vendor are doing. */
export interface VendorReport {
  readonly kind: DeviceKind;
  /** False: nothing is configured, and nothing is queued for its devices. */
  readonly configured: boolean;
  /** Why nothing can be sent although it is configured, for people; null: it can. */
  readonly problem: string | null;
  /** Rows that wait, of all nodes; null: the database is away. */
  readonly pending: number | null;
  /** Those of them whose time has come. */
  readonly due: number | null;
  /** Age of what has waited longest, in ms; null: nothing waits, or nobody knows. */
  readonly oldestPendingMs: number | null;
  /** Of this node, like everything below; the counts are since its start. */
  readonly inFlight: number;
  readonly sent: number;
  readonly failed: number;
  /** Devices that the vendor does not know any more. */
  readonly removed: number;
  readonly refused: number;
  readonly expired: number;
  readonly lastError: LastError | null;
  /** Until when nothing is sent because the vendor as a whole has a problem; null: it is sent. */
  readonly backoffUntil: Date | null;
}

/** The outcome of a push that somebody asked for to see whether it arrives. */
export interface TestedDevice {
  readonly deviceId: DeviceId;
  readonly kind: DeviceKind;
  readonly label: string | null;
  /** `failed` with the category `not_configured` where its vendor is not set up, `unusable` where it has a problem. */
  readonly outcome: PushOutcome;
}
