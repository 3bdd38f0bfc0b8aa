import type { H2Response } from './h2-connection.ts';
import { parseJsonObject } from './response.ts';
import { delivered, failed, unregistered, refused } from '../outcomes.ts';
import type { PushOutcome } from './vendor.ts';

/** Of a device that got too many in a row. */
const DEFAULT_WAIT_AFTER_429_MS = 60_000;
/** Words of Apple's that say that the key is at fault, or that it changes too often. */
const KEY_FAILURE_REASONS: ReadonlySet<string> = new Set([
  'BadCertificate',
  'BadCertificateEnvironment',
  'BadEnvironmentKeyIdInToken',
  'BadEnvironmentKeyInToken',
  'ExpiredProviderToken',
  'Forbidden',
  'InvalidProviderToken',
  'MissingProviderToken',
  'TooManyProviderTokenUpdates',
  'UnrelatedKeyIdInToken',
]);

/** Apple's word for what is wrong; null: there is none that can be read. */
export function apnsReasonOf({ body }: H2Response): string | null {
  const reason = parseJsonObject(body)?.['reason'];
  return typeof reason === 'string' ? reason : null;
}

/** What an answer of Apple's service means for a push. */
export function readApnsResponse(response: H2Response): PushOutcome {
  const code = response.status;
  if (code === 200) return delivered;
  const reason = apnsReasonOf(response) ?? '';
  const { retryAfterMs } = response;
  // Nothing but Apple's own word forgets a device: a relay has a 410 of its own.
  if (code === 410 && (reason === 'Unregistered' || reason === 'ExpiredToken'))
    return unregistered('unregistered', code);
  // Of a token of the other environment as well: `sandbox` set wrong must not forget every device.
  if (code === 400 && reason === 'BadDeviceToken') return refused('token', code);
  if (code === 400 && reason === 'DeviceTokenNotForTopic') return refused('other app', code);
  if (KEY_FAILURE_REASONS.has(reason)) return failed('key', { code, retryAfterMs });
  if (code === 413) return refused('too large', code);
  if (code === 400 && reason !== '') return refused('request', code);
  if (code === 429) return failed('quota', { code, retryAfterMs: retryAfterMs ?? DEFAULT_WAIT_AFTER_429_MS });
  // 500 may be about this one alone; what else is above is not.
  if (code >= 500) return failed('status', { code, retryAfterMs, vendorWide: code !== 500 });
  return failed('answer', { code, retryAfterMs, vendorWide: true });
}
