import type { VendorResponse } from './response.ts';
import { delivered, failedOutcome, unregisteredOutcome, refusedOutcome } from '../outcomes.ts';
import type { PushOutcome } from './vendor.ts';

/** The wait that Google recommends after an exceeded quota, if the answer has no Retry-After. */
const DEFAULT_QUOTA_WAIT_MS = 60_000;
/** FCM's error code for an app on Apple's devices, if Firebase does not have Apple's key. */
const THIRD_PARTY_AUTH_ERROR = 'THIRD_PARTY_AUTH_ERROR';

/** Google's error format: https://cloud.google.com/apis/design/errors. */
interface GoogleError {
  /**
   * FCM's own code (UNREGISTERED …), else Google's general one (NOT_FOUND …); null: the answer is not in Google's error
   * format.
   */
  readonly errorCode: string | null;
  readonly rejectedFields: readonly string[];
  readonly exceededQuotas: readonly string[];
}

/**
 * True if Google rejects the access token. Google also answers 401 if Firebase lacks a key of Apple: that says nothing
 * about the access token.
 */
export function refusesAccessToken({ status, json }: VendorResponse): boolean {
  return status === 401 && parseGoogleError(json).errorCode !== THIRD_PARTY_AUTH_ERROR;
}

/** Derives the outcome of a push from the answer of FCM. */
export function readFcmResponse({ status, json, retryAfterMs }: VendorResponse): PushOutcome {
  const code = status;
  if (status === 200 && typeof json?.['name'] === 'string') return delivered;
  const { errorCode, rejectedFields, exceededQuotas } = parseGoogleError(json);
  const failureDetails = { code, retryAfterMs };
  // Only FCM's own code UNREGISTERED removes the device. The general code NOT_FOUND may be about the project or the
  // URL.
  if (status === 404 && errorCode === 'UNREGISTERED') return unregisteredOutcome('unregistered', code);
  if (status === 404 && errorCode === 'NOT_FOUND') return refusedOutcome('unregistered', code);
  if (errorCode === 'SENDER_ID_MISMATCH') return refusedOutcome('other project', code);
  if (errorCode === THIRD_PARTY_AUTH_ERROR) return refusedOutcome('third party', code);
  if (status === 400 && errorCode === 'INVALID_ARGUMENT') {
    return rejectedFields.includes('message.token')
      ? unregisteredOutcome('token', code)
      : refusedOutcome('request', code);
  }
  if (status === 413) return refusedOutcome('too large', code);
  if (status === 401 || status === 403) return failedOutcome('key', failureDetails);
  if (status === 429) {
    const isDeviceQuota = exceededQuotas.some((quota) => /device/i.test(quota));
    return failedOutcome('quota', {
      code,
      retryAfterMs: retryAfterMs ?? DEFAULT_QUOTA_WAIT_MS,
      vendorWide: !isDeviceQuota,
    });
  }
  // A 500 may concern only this push; higher codes concern the vendor as a whole.
  if (status >= 500) return failedOutcome('status', { ...failureDetails, vendorWide: status !== 500 });
  return failedOutcome('answer', { ...failureDetails, vendorWide: true });
}

function parseGoogleError(json: Record<string, unknown> | null): GoogleError {
  const error = asObject(json?.['error']);
  const details = asList(error?.['details']).map(asObject);
  const fcmCode = details.find((detail) => typeof detail?.['errorCode'] === 'string')?.['errorCode'];
  const errorCode = fcmCode ?? error?.['status'];
  const textsOf = (listField: string, memberName: string): string[] =>
    details
      .flatMap((detail) => asList(detail?.[listField]))
      .map((each) => asObject(each)?.[memberName])
      .filter((value) => typeof value === 'string');
  return {
    errorCode: typeof errorCode === 'string' ? errorCode : null,
    rejectedFields: textsOf('fieldViolations', 'field'),
    exceededQuotas: [...textsOf('violations', 'subject'), ...textsOf('violations', 'description')],
  };
}

function asObject(value: unknown): Record<string, unknown> | null {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : null;
}

function asList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
