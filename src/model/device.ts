/** Vendors of push services: Firebase Cloud Messaging, Apple's service, browsers' services (RFC 8030). */
export const deviceKinds = ['google', 'apple', 'web'] as const;
export type DeviceKind = (typeof deviceKinds)[number];

/** The purpose for which tokens of devices are sealed. */
export const DEVICE_TOKEN_SEAL_PURPOSE = 'device-token';

/** A browser's subscription as its own `PushSubscription.toJSON()` has it. */
export interface WebSubscription {
  readonly endpoint: string;
  /** The browser's public key and its authentication secret (RFC 8291), in base64url. */
  readonly keys: { readonly p256dh: string; readonly auth: string };
}

/** The messages of a conversation that a member is notified of. */
export const conversationNotificationLevels = ['all', 'mentions', 'nothing'] as const;
export type ConversationNotificationLevel = (typeof conversationNotificationLevels)[number];
