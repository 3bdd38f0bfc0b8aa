import type { JsonLimits } from './json-limits.ts';

/** The bounds of a request body, which are checked before the body is parsed. */
export interface BodyLimits extends JsonLimits {
  /** The most bytes after decompression. `http.max-body-size` bounds them too. */
  readonly maxBytes: number;
  /** Whether the body may be compressed. `maxExpandedBytes` bounds how far it may expand. */
  readonly allowsCompression: boolean;
}

const KIB = 1_024;
const NO_LIMIT = Infinity;

/** Limits of operations that need no token. Each such operation takes a few short strings. */
export const ANYBODY_OPERATION_LIMITS: BodyLimits = {
  maxBytes: 16 * KIB,
  allowsCompression: false,
  maxDepth: 8,
  maxValues: 50,
  maxShapes: 50,
};

/**
 * Limits of operations that need a token and define no limits of their own. The longest list in their inputs has 100
 * items.
 */
export const SIGNED_IN_OPERATION_LIMITS: BodyLimits = {
  maxBytes: 64 * KIB,
  allowsCompression: true,
  maxDepth: 8,
  maxValues: 500,
  maxShapes: 500,
};

/**
 * Limits of operations that take the text of a message. They have no bound in bytes: `limits.text` bounds the text, and
 * each of its characters may be an escape of twelve bytes.
 */
export const MESSAGE_OPERATION_LIMITS: BodyLimits = { ...SIGNED_IN_OPERATION_LIMITS, maxBytes: NO_LIMIT };

/**
 * Limits of posts at `/v1/webhooks/<token>`: a GitHub push of 2,048 commits holds 43,000 values, and an alert of Sentry
 * is nested about ten levels deep.
 */
export const WEBHOOK_POST_LIMITS: BodyLimits = {
  maxBytes: NO_LIMIT,
  allowsCompression: true,
  maxDepth: 64,
  maxValues: 60_000,
  maxShapes: 2_000,
};

/** Limits of events of git hosts: four times the values of other posts. A thread parses the large events. */
export const GIT_EVENT_LIMITS: BodyLimits = { ...WEBHOOK_POST_LIMITS, maxValues: 4 * WEBHOOK_POST_LIMITS.maxValues };

/** Limits of requests that register or change a reverse webhook. The longest list has 100 message ids. */
export const HOOK_MANAGEMENT_LIMITS: BodyLimits = {
  maxBytes: NO_LIMIT,
  allowsCompression: true,
  maxDepth: 8,
  maxValues: 500,
  maxShapes: 500,
};

/**
 * Limits of a frame (a JSON-RPC text) whose method is not parsed yet: `live.subscribe` names up to 20,000
 * conversations.
 */
export const FRAME_LIMITS: JsonLimits = { maxDepth: 16, maxValues: 25_000, maxShapes: 1_000 };

/** Limits of `live.subscribe`, whose input may be as large as a frame. */
export const SUBSCRIBE_LIMITS: BodyLimits = { ...SIGNED_IN_OPERATION_LIMITS, ...FRAME_LIMITS, maxBytes: NO_LIMIT };

/** Limits of frames on a connection that is not signed in. */
export const ANONYMOUS_FRAME_LIMITS: JsonLimits = { maxDepth: 8, maxValues: 60, maxShapes: 60 };
/**
 * The most bytes of a frame on a connection that is not signed in, and of all waiting frames of such a connection
 * together.
 */
export const MAX_ANONYMOUS_FRAME_BYTES = 16 * KIB;

/** The limits of an operation: its own, or else those for its kind of callers. */
export function limitsOf(operation: { readonly who: string; readonly limits?: BodyLimits }): BodyLimits {
  const { who, limits } = operation;
  return limits ?? (who === 'anybody' ? ANYBODY_OPERATION_LIMITS : SIGNED_IN_OPERATION_LIMITS);
}

/** A body may expand to this size at any ratio, since short texts may consist of repetitions. */
const ANY_RATIO_EXPANDED_BYTES = 64 * KIB;
/**
 * Above `ANY_RATIO_EXPANDED_BYTES`, a body may expand at most this many times. JSON of machines expands 10 to 30 times,
 * and and a malicious body 1,000 times.
 */
const MAX_COMPRESSION_RATIO = 50;

/** The size to which a compressed body of `sentBytes` may expand. */
export function maxExpandedBytes(sentBytes: number): number {
  return Math.max(ANY_RATIO_EXPANDED_BYTES, sentBytes * MAX_COMPRESSION_RATIO);
}
