import type { JsonLimits } from './json-limits.ts';

/** The most that a body may be, checked before it is parsed. */
export interface BodyLimits extends JsonLimits {
  /** After decompression; `http.max-body-size` where that is less. */
  readonly bytes: number;
  /** Whether it may come compressed; then it may expand as far as `maxExpandedBytes` says. */
  readonly allowsCompression: boolean;
}

const KIB = 1_024;
const NO_LIMIT = Infinity;

/** Operations that need no token: what one takes is a few short strings. */
export const ANYBODY_OPERATION_LIMITS: BodyLimits = {
  bytes: 16 * KIB,
  allowsCompression: false,
  maxDepth: 8,
  maxValues: 50,
  maxShapes: 50,
};

/** Operations with a token that say nothing else. The longest list that one of them takes has 100 items. */
export const SIGNED_IN_OPERATION_LIMITS: BodyLimits = {
  bytes: 64 * KIB,
  allowsCompression: true,
  maxDepth: 8,
  maxValues: 500,
  maxShapes: 500,
};

/** Operations that take the text of a message: as `limits.text` allows, each character an escape of twelve bytes. */
export const MESSAGE_LIMITS: BodyLimits = { ...SIGNED_IN_OPERATION_LIMITS, bytes: NO_LIMIT };

/**
 * Posts at `/v1/webhooks/<token>`: a GitHub push of 2,048 commits holds 43,000 values, an alert of Sentry is nested some
 * ten levels deep.
 */
export const WEBHOOK_POST_LIMITS: BodyLimits = {
  bytes: NO_LIMIT,
  allowsCompression: true,
  maxDepth: 64,
  maxValues: 60_000,
  maxShapes: 2_000,
};

/** Events of git hosts, of which large ones are read in a thread: four times as large, with as many times the values. */
export const GIT_EVENT_LIMITS: BodyLimits = { ...WEBHOOK_POST_LIMITS, maxValues: 4 * WEBHOOK_POST_LIMITS.maxValues };

/** What registers and changes a reverse webhook; the longest list has 100 message ids. */
export const HOOK_MANAGEMENT_LIMITS: BodyLimits = {
  bytes: NO_LIMIT,
  allowsCompression: true,
  maxDepth: 8,
  maxValues: 500,
  maxShapes: 500,
};

/** JSON-RPC texts, of which nobody knows the method yet: `live.subscribe` names up to 20,000 conversations. */
export const FRAME_LIMITS: JsonLimits = { maxDepth: 16, maxValues: 25_000, maxShapes: 1_000 };

/** `live.subscribe`, which takes as much as a frame may be. */
export const SUBSCRIBE_LIMITS: BodyLimits = { ...SIGNED_IN_OPERATION_LIMITS, ...FRAME_LIMITS, bytes: NO_LIMIT };

/** Frames before signing in. */
export const ANONYMOUS_FRAME_LIMITS: JsonLimits = { maxDepth: 8, maxValues: 60, maxShapes: 60 };
/** Bytes of a frame, and of those that wait, before signing in. */
export const ANONYMOUS_FRAME_BYTES = 16 * KIB;

/** What an operation takes, as it says or by who may call it. */
export function limitsOf(operation: { readonly who: string; readonly limits?: BodyLimits }): BodyLimits {
  const { who, limits } = operation;
  return limits ?? (who === 'anybody' ? ANYBODY_OPERATION_LIMITS : SIGNED_IN_OPERATION_LIMITS);
}

/** Texts repeat themselves; up to here nobody asks how much. */
const FREE_EXPANDED_BYTES = 64 * KIB;
/** JSON of machines expands 10 to 30 times, and a bomb of deflate 1,000 times. */
const MAX_COMPRESSION_RATIO = 50;

/** As far as a compressed body may expand: its sender pays a fiftieth of what the server does. */
export function maxExpandedBytes(sentBytes: number): number {
  return Math.max(FREE_EXPANDED_BYTES, sentBytes * MAX_COMPRESSION_RATIO);
}
