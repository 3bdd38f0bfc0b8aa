/** Vendors of push services: Firebase Cloud Messaging, Apple's service, browsers' services (RFC 8030). */
export const deviceKinds = ['google', 'apple', 'web'] as const;
export type DeviceKind = (typeof deviceKinds)[number];

/** What tokens of devices are sealed for. */
export const DEVICE_TOKEN_SEAL_PURPOSE = 'device-token';

/** A browser's subscription as its own `PushSubscription.toJSON()` has it. */
export interface WebSubscription {
  readonly endpoint: string;
  /** Base64url: the browser's public key and its authentication secret (RFC 8291). */
  readonly keys: { readonly p256dh: string; readonly auth: string };
}

/** What a member wants to be told of. */
export const conversationNotificationLevels = ['all', 'mentions', 'nothing'] as const;
export type ConversationNotificationLevel = (typeof conversationNotificationLevels)[number];
