import type { DeviceKind } from '../../model/device.ts';
import type { ConversationId, Seq } from '../../model/ids.ts';

/** A device as its vendor knows it. `token`: of a browser the JSON of its `WebSubscription`. Never logged. */
export interface PushTarget {
  readonly token: string;
  /** Google's project, Apple's bundle; null: the configuration's first. */
  readonly app: string | null;
}

/** What a device is told; `push.content` has been applied: without a text there is none to be seen. */
export interface PushNotification {
  readonly conversationId: ConversationId;
  /** The messages it stands for. */
  readonly firstSeq: Seq;
  readonly lastSeq: Seq;
  /** The group's, or whoever writes privately; the name of the installation where nothing is to be told. */
  readonly title: string;
  /** Null: the device says in its own words that there is something. May be long: a vendor's bound cuts it. */
  readonly text: string | null;
  /** Unread messages of all the account's conversations, for the number on an app's icon; null: not counted. */
  readonly accountUnreadCount: number | null;
  /** Whether it is worth waking somebody up: a mention, a private message. */
  readonly urgent: boolean;
  /** Not after this: vendors keep it so long for a device that is switched off. */
  readonly expiresAt: Date;
}

/**
 * The outcome of a push. `category` is one of a bounded set of words, for logs and metrics; it never holds what a vendor
 * wrote.
 * - `delivered`: the vendor took it.
 * - `unregistered`: the vendor no longer knows this device, and the server forgets it.
 * - `refused`: no repeat will help (a payload or a key that the vendor does not take); the device stays.
 * - `failed`: to be repeated, not before `retryAfterMs` where the vendor says so.
 */
export type PushOutcome =
  | { readonly outcome: 'delivered' }
  | { readonly outcome: 'unregistered' | 'refused'; readonly category: string; readonly code: number | null }
  | {
      readonly outcome: 'failed';
      readonly category: string;
      readonly code: number | null;
      readonly retryAfterMs: number | null;
      /** True: the vendor as a whole has a problem (away, overloaded, a wrong key), not this device. */
      readonly vendorWide: boolean;
    };

/** A vendor's push service. */
export interface PushVendor {
  readonly kind: DeviceKind;
  /** Why no push can be sent by it at all, for people (a key without a file …); null: it can. */
  readonly problem: string | null;
  /** Sends one push. Resolves within `push.timeout` and a moment, and never rejects for what the vendor did. */
  send(target: PushTarget, notification: PushNotification): Promise<PushOutcome>;
  /** Closes its connections; what is under way fails. */
  stop(): Promise<void>;
}

/** The vendors that are set up, by kind. */
export type PushVendors = ReadonlyMap<DeviceKind, PushVendor>;
