import type { DeviceKind } from '../../model/device.ts';
import type { ConversationId, Seq } from '../../model/ids.ts';

/** A device as its vendor knows it. `token`: for a browser the JSON of its `WebSubscription`. Never logged. */
export interface PushTarget {
  readonly token: string;
  /** Google's project, Apple's bundle; null: the configuration's first. */
  readonly app: string | null;
}

/** The contents of a notification; `push.content` has been applied: without a text there is no text to show. */
export interface PushNotification {
  readonly conversationId: ConversationId;
  /** The first and last of the messages that the notification covers. */
  readonly firstSeq: Seq;
  readonly lastSeq: Seq;
  /** The group's title, or the sender of a private message; the name of the installation if contents are hidden. */
  readonly title: string;
  /** Null: the device announces new messages in its own words. The text may be long: a vendor's limit cuts it. */
  readonly text: string | null;
  /** Unread messages of all the account's conversations, for the number on an app's icon; null: not counted. */
  readonly accountUnreadCount: number | null;
  /** Whether the notification may wake somebody up: a mention, a private message. */
  readonly urgent: boolean;
  /** Until this time vendors keep the notification for a device that is switched off. */
  readonly expiresAt: Date;
}

/**
 * The outcome of a push. `category` is one of a bounded set of words, for logs and metrics; it never holds a vendor's
 * text.
 * - `delivered`: the vendor accepted it.
 * - `unregistered`: the vendor no longer knows this device, and the server removes it.
 * - `refused`: a retry does not help (a payload or a key that the vendor does not accept); the device stays.
 * - `failed`: to be retried, not before `retryAfterMs` if the vendor sets it.
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
  /** Why this vendor can send no push at all, for people (a key without a file …); null: it can. */
  readonly problem: string | null;
  /** Sends one push. Resolves within `push.timeout` and a moment, and never rejects because of the vendor. */
  send(target: PushTarget, notification: PushNotification): Promise<PushOutcome>;
  /** Closes its connections; pushes in flight fail. */
  stop(): Promise<void>;
}

/** The configured vendors, by kind. */
export type PushVendors = ReadonlyMap<DeviceKind, PushVendor>;
