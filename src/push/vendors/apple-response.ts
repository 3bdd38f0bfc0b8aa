import type { H2Response } from './h2-connection.ts';
import { parseJsonObject } from './response.ts';
import { delivered, failed, unregistered, refused } from '../outcomes.ts';
import type { PushOutcome } from './vendor.ts';

/** The wait of a device that got too many pushes in a row, if Apple's answer gives none. */
const DEFAULT_WAIT_AFTER_429_MS = 60_000;
/** Apple's reasons that mean that the key is wrong, or that its tokens change too often. */
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

/** Apple's reason for an error; null: there is none that can be parsed. */
export function apnsReasonOf({ body }: H2Response): string | null {
  const reason = parseJsonObject(body)?.['reason'];
  return typeof reason === 'string' ? reason : null;
}

/** The outcome of a push from the answer of Apple's service. */
export function readApnsResponse(response: H2Response): PushOutcome {
  const code = response.status;
  if (code === 200) return delivered;
  const reason = apnsReasonOf(response) ?? '';
  const { retryAfterMs } = response;
  // Only Apple's own reason removes a device: a relay may send a 410 of its own.
  if (code === 410 && (reason === 'Unregistered' || reason === 'ExpiredToken'))
    return unregistered('unregistered', code);
  // Apple also gives this answer for a token of the other environment: a wrong `sandbox` must not remove every device.
  if (code === 400 && reason === 'BadDeviceToken') return refused('token', code);
  if (code === 400 && reason === 'DeviceTokenNotForTopic') return refused('other app', code);
  if (KEY_FAILURE_REASONS.has(reason)) return failed('key', { code, retryAfterMs });
  if (code === 413) return refused('too large', code);
  if (code === 400 && reason !== '') return refused('request', code);
  if (code === 429) return failed('quota', { code, retryAfterMs: retryAfterMs ?? DEFAULT_WAIT_AFTER_429_MS });
  // 500 may concern this push alone; higher codes do not.
  if (code >= 500) return failed('status', { code, retryAfterMs, vendorWide: code !== 500 });
  return failed('answer', { code, retryAfterMs, vendorWide: true });
}
