import type { H2Response } from './h2-connection.ts';
import { parseJsonObject } from './response.ts';
import { delivered, failedOutcome, unregisteredOutcome, refusedOutcome } from '../outcomes.ts';
import type { PushOutcome } from './vendor.ts';

/** The wait after an answer 429 (too many pushes to one device) that has no Retry-After. */
const DEFAULT_WAIT_AFTER_429_MS = 60_000;
/** Apple's error reasons for a wrong key, and for a key whose provider tokens change too often. */
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

/** The error reason in an answer of Apple, such as `BadDeviceToken`; null: the answer has no readable one. */
export function apnsReasonOf({ body }: H2Response): string | null {
  const reason = parseJsonObject(body)?.['reason'];
  return typeof reason === 'string' ? reason : null;
}

/** Derives the outcome of a push from the answer of Apple's service. */
export function readApnsResponse(response: H2Response): PushOutcome {
  const code = response.status;
  if (code === 200) return delivered;
  const reason = apnsReasonOf(response) ?? '';
  const { retryAfterMs } = response;
  // A 410 without Apple's reason does not remove the device: a relay between this server and Apple may have sent it.
  if (code === 410 && (reason === 'Unregistered' || reason === 'ExpiredToken'))
    return unregisteredOutcome('unregistered', code);
  // Apple also answers BadDeviceToken for a token of its other environment (production or sandbox). If the setting
  // `sandbox` is wrong, the devices must not be removed.
  if (code === 400 && reason === 'BadDeviceToken') return refusedOutcome('token', code);
  if (code === 400 && reason === 'DeviceTokenNotForTopic') return refusedOutcome('other app', code);
  if (KEY_FAILURE_REASONS.has(reason)) return failedOutcome('key', { code, retryAfterMs });
  if (code === 413) return refusedOutcome('too large', code);
  if (code === 400 && reason !== '') return refusedOutcome('request', code);
  if (code === 429) return failedOutcome('quota', { code, retryAfterMs: retryAfterMs ?? DEFAULT_WAIT_AFTER_429_MS });
  // A 500 may concern only this push; higher codes concern the vendor as a whole.
  if (code >= 500) return failedOutcome('status', { code, retryAfterMs, vendorWide: code !== 500 });
  return failedOutcome('answer', { code, retryAfterMs, vendorWide: true });
}
