import { createHash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { KlatchError } from '../errors.ts';

/**
 * Headers with a sender's id of a delivery, in order of precedence. Ids in different headers never match each other.
 */
const IDEMPOTENCY_HEADERS = ['idempotency-key', 'webhook-id', 'x-github-delivery', 'x-gitlab-event-uuid'] as const;
const VISIBLE_ASCII = /^[\x21-\x7e]{1,255}$/;
const WHOLE_NUMBER = /^\d{1,255}$/;

/** The key by which a repeated post is recognised, and the hash of its body; both null without any of these headers. */
export function idempotencyKey(
  headers: IncomingHttpHeaders,
  body: Buffer,
): { key: string | null; bodyHash: string | null } {
  const name = IDEMPOTENCY_HEADERS.find((header) => headers[header] !== undefined);
  if (name === undefined) return { key: null, bodyHash: null };
  const value = headers[name];
  if (typeof value !== 'string' || !VISIBLE_ASCII.test(value)) {
    throw new KlatchError('invalid_input', { sentence: `${name}: must have 1 to 255 visible ASCII characters` });
  }
  const bodyHash = createHash('sha256').update(body).digest('hex');
  // Only Idempotency-Key promises that a key stands for one body. With the other headers, a different body under the
  // same id is a post of its own. So the key holds the body's hash.
  const key = name === 'idempotency-key' ? `${name}:${value}` : `${name}:${value}:${bodyHash}`;
  return { key, bodyHash };
}

/**
 * The hops of a message: the number in `klatch-hops` plus one, or 0 without this header. Throws `hop_limit` if the
 * number is `maxHops` or more.
 */
export function nextHopCount(headers: IncomingHttpHeaders, maxHops: number): number {
  const value = headers['klatch-hops'];
  if (value === undefined) return 0;
  if (typeof value !== 'string' || !WHOLE_NUMBER.test(value)) {
    throw new KlatchError('invalid_input', { sentence: 'klatch-hops: must be a whole number, as it was received' });
  }
  if (Number(value) >= maxHops) throw new KlatchError('hop_limit');
  return Number(value) + 1;
}
