import type { JsonLimits } from './json-limits.ts';

/** The bounds of a body, checked before it is parsed. */
export interface BodyLimits extends JsonLimits {
  /** After decompression; `http.max-body-size` where that is less. */
  readonly bytes: number;
  /** Whether it may come compressed; then it may expand as far as `maxExpandedBytes` says. */
  readonly allowsCompression: boolean;
}

const KIB = 1_024;
const NO_LIMIT = Infinity;

/** Operations that need no token: each takes a few short strings. */
export const ANYBODY_OPERATION_LIMITS: BodyLimits = {
  bytes: 16 * KIB,
  allowsCompression: false,
  maxDepth: 8,
  maxValues: 50,
  maxShapes: 50,
};

/** Operations with a token that define no other limits. The longest list that one of them takes has 100 items. */
export const SIGNED_IN_OPERATION_LIMITS: BodyLimits = {
  bytes: 64 * KIB,
  allowsCompression: true,
  maxDepth: 8,
  maxValues: 500,
  maxShapes: 500,
};

/**
 * Operations that take the text of a message, which `limits.text` bounds: each character may be an escape of twelve
 * bytes.
 */
export const MESSAGE_LIMITS: BodyLimits = { ...SIGNED_IN_OPERATION_LIMITS, bytes: NO_LIMIT };

/**
 * Posts at `/v1/webhooks/<token>`: a GitHub push of 2,048 commits holds 43,000 values, an alert of Sentry is nested
 * some ten levels deep.
 */
export const WEBHOOK_POST_LIMITS: BodyLimits = {
  bytes: NO_LIMIT,
  allowsCompression: true,
  maxDepth: 64,
  maxValues: 60_000,
  maxShapes: 2_000,
};

/**
 * Events of git hosts, the large ones of which are read in a thread: four times as large, with four times the values.
 */
export const GIT_EVENT_LIMITS: BodyLimits = { ...WEBHOOK_POST_LIMITS, maxValues: 4 * WEBHOOK_POST_LIMITS.maxValues };

/** Requests that register and change a reverse webhook; the longest list has 100 message ids. */
export const HOOK_MANAGEMENT_LIMITS: BodyLimits = {
  bytes: NO_LIMIT,
  allowsCompression: true,
  maxDepth: 8,
  maxValues: 500,
  maxShapes: 500,
};

/** JSON-RPC texts whose method is not known yet: `live.subscribe` names up to 20,000 conversations. */
export const FRAME_LIMITS: JsonLimits = { maxDepth: 16, maxValues: 25_000, maxShapes: 1_000 };

/** `live.subscribe`, which takes as much as a frame may be. */
export const SUBSCRIBE_LIMITS: BodyLimits = { ...SIGNED_IN_OPERATION_LIMITS, ...FRAME_LIMITS, bytes: NO_LIMIT };

/** Frames before signing in. */
export const ANONYMOUS_FRAME_LIMITS: JsonLimits = { maxDepth: 8, maxValues: 60, maxShapes: 60 };
/** Bytes of one frame before signing in, and of all frames of a connection that wait for their turn then. */
export const ANONYMOUS_FRAME_BYTES = 16 * KIB;

/** The limits of an operation: its own, or those for its callers. */
export function limitsOf(operation: { readonly who: string; readonly limits?: BodyLimits }): BodyLimits {
  const { who, limits } = operation;
  return limits ?? (who === 'anybody' ? ANYBODY_OPERATION_LIMITS : SIGNED_IN_OPERATION_LIMITS);
}

/** Up to this size a body may expand at any ratio, since texts repeat themselves. */
const FREE_EXPANDED_BYTES = 64 * KIB;
/** JSON of machines expands 10 to 30 times, and a bomb of deflate 1,000 times. */
const MAX_COMPRESSION_RATIO = 50;

/**
 * The size to which a compressed body may expand: above FREE_EXPANDED_BYTES, its sender has to send a fiftieth of it.
 */
export function maxExpandedBytes(sentBytes: number): number {
  return Math.max(FREE_EXPANDED_BYTES, sentBytes * MAX_COMPRESSION_RATIO);
}
