import { createHmac, type KeyObject } from 'node:crypto';

/**
 * The `webhook-signature` header of Standard Webhooks 1.0.0: `v1,` and the base64 HMAC-SHA256 of `id.timestamp.body`,
 * once for each key, space separated. `timestampS` is in whole seconds.
 */
export function signV1(keys: readonly KeyObject[], id: string, timestampS: number, body: Buffer): string {
  const head = `${id}.${timestampS}.`;
  return keys.map((key) => `v1,${createHmac('sha256', key).update(head).update(body).digest('base64')}`).join(' ');
}
