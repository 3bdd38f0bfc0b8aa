import type { DeviceKind } from '../../model/device.ts';
import type { ConversationId, Seq } from '../../model/ids.ts';

/**
 * A device as its vendor knows it. `token`: the vendor's device token; for a browser, the JSON of its
 * `WebSubscription`. Must never be logged.
 */
export interface PushTarget {
  readonly token: string;
  /** The app that the device has: Google's project or Apple's bundle. Null: the first one in the configuration. */
  readonly app: string | null;
}

/** The contents of a notification. The setting `push.content` is already applied to title and text. */
export interface PushNotification {
  readonly conversationId: ConversationId;
  /** The seqs of the first and the last message that the notification covers. */
  readonly firstSeq: Seq;
  readonly lastSeq: Seq;
  /**
   * The group's title, or the sender of a private message. If `push.content` hides the contents, the name of the
   * installation.
   */
  readonly title: string;
  /**
   * The text to show, which may be longer than the vendor allows. Null: the device announces new messages in its own
   * words.
   */
  readonly text: string | null;
  /**
   * The number of unread messages in all conversations of the account, for the badge on the app's icon; null: not
   * counted.
   */
  readonly accountUnreadCount: number | null;
  /** True if the notification may wake somebody up: it is for a mention or a private message. */
  readonly urgent: boolean;
  /** Vendors keep the notification until this time for a device that is switched off. */
  readonly expiresAt: Date;
}

/**
 * The outcome of a push. `category` is one of a fixed set of words, for logs and metrics; it never contains a vendor's
 * text.
 * - `delivered`: the vendor accepted it.
 * - `unregistered`: the vendor no longer knows this device, and the server removes it.
 * - `refused`: a retry does not help (a payload or a key that the vendor does not accept); the device stays.
 * - `failed`: the push must be retried, but not before `retryAfterMs` if the vendor sets it.
 */
export type PushOutcome =
  | { readonly outcome: 'delivered' }
  | { readonly outcome: 'unregistered' | 'refused'; readonly category: string; readonly code: number | null }
  | {
      readonly outcome: 'failed';
      readonly category: string;
      readonly code: number | null;
      readonly retryAfterMs: number | null;
      /** True: the vendor as a whole has a problem (unavailable, overloaded, a wrong key), not this device. */
      readonly vendorWide: boolean;
    };

/** A vendor's push service. */
export interface PushVendor {
  readonly kind: DeviceKind;
  /** Why this vendor cannot send any push (such as a missing key file), as a sentence for people; null: it can. */
  readonly problem: string | null;
  /** Sends one push. Resolves shortly after `push.timeout` at the latest, and never rejects because of the vendor. */
  send(target: PushTarget, notification: PushNotification): Promise<PushOutcome>;
  /** Closes the connections to the vendor; pushes in flight fail. */
  stop(): Promise<void>;
}

/** The configured vendors, by kind. */
export type PushVendors = ReadonlyMap<DeviceKind, PushVendor>;
