import { createHmac, sign, type KeyObject } from 'node:crypto';

/**
 * The header `webhook-signature` of Standard Webhooks 1.0.0. For each key it has `v1,` and the base64 HMAC-SHA256 of
 * `id.timestamp.body`, separated by spaces. `timestampS`: Unix time in whole seconds.
 */
export function signV1(keys: readonly KeyObject[], id: string, timestampS: number, body: Buffer): string {
  const head = `${id}.${timestampS}.`;
  return keys.map((key) => `v1,${createHmac('sha256', key).update(head).update(body).digest('base64')}`).join(' ');
}

/**
 * The header `webhook-signature` with Ed25519. For each private key it has `v1a,` and the base64 of the 64-byte
 * signature. A signature costs 34 µs for a body of 600 bytes, an HMAC 2 µs: only hooks that ask for a `v1a` signature
 * get one. On the thread pool a signature would still cost the event loop 27 µs, and 42 µs of processor time in all. So
 * this function signs synchronously.
 *
 * A server key also signs statements (`operations/server/signed-about.ts`). A verifier cannot take a delivery for a
 * statement: the signed text of a delivery begins with a hook's number, a statement with a brace.
 */
export function signV1a(keys: readonly KeyObject[], id: string, timestampS: number, body: Buffer): string {
  const signed = Buffer.concat([Buffer.from(`${id}.${timestampS}.`), body]);
  return keys.map((key) => `v1a,${sign(null, signed, key).toString('base64')}`).join(' ');
}
