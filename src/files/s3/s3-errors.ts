import { NotInStoreError, StoreUnavailableError, StoreFullError } from '../store.ts';
import { firstElementText } from './xml.ts';

/** An error answer of the store. */
export interface S3ErrorResponse {
  readonly status: number;
  /** The error code in the body of the answer, such as `NoSuchKey`; null: the body has no readable code. */
  readonly code: string | null;
}

const RETRYABLE_STATUSES = new Set([429, 500, 502, 503, 504]);
const RETRYABLE_CODES = new Set([
  'SlowDown',
  'InternalError',
  'RequestTimeout',
  'ServiceUnavailable',
  'OperationAborted',
]);
const STORE_FULL_CODES = new Set([
  'QuotaExceeded',
  'XMinioStorageFull',
  'XMinioAdminBucketQuotaExceeded',
  'InsufficientStorage',
  'ServiceQuotaExceededException',
]);
const NOT_FOUND_CODES = new Set(['NoSuchKey', 'NoSuchUpload', 'NotFound']);

const CONFIG_KEY = 'services.aws.s3';
/**
 * What the administrator should do about an error code of the store, with the configuration key to change. The text
 * never contains an access key.
 */
const SENTENCE_BY_CODE: Readonly<Record<string, string>> = {
  NoSuchBucket: `${CONFIG_KEY}.default-bucket: there is no such bucket; make it, or name another one`,
  InvalidBucketName: `${CONFIG_KEY}.default-bucket: the store takes this for no name of a bucket`,
  InvalidAccessKeyId: `${CONFIG_KEY}.access-key: the store does not know this access key`,
  SignatureDoesNotMatch: `${CONFIG_KEY}.secret-key: it does not belong to the access key`,
  AuthorizationHeaderMalformed: `${CONFIG_KEY}.region: the bucket is in another region`,
  AuthorizationQueryParametersError: `${CONFIG_KEY}.region: the bucket is in another region`,
  PermanentRedirect: `${CONFIG_KEY}.endpoint, ${CONFIG_KEY}.region: the bucket is in another region`,
  TemporaryRedirect: `${CONFIG_KEY}.endpoint, ${CONFIG_KEY}.region: the bucket is in another region`,
  AccessDenied: `${CONFIG_KEY}.access-key: its user may not do this with the bucket (list, read, write and delete are needed)`,
  AllAccessDisabled: `${CONFIG_KEY}.access-key: the store has closed this bucket`,
  RequestTimeTooSkewed:
    'the clock of this machine and the one of the store differ by more than the store takes; set them',
  RequestExpired: 'the clock of this machine and the one of the store differ by more than the store takes; set them',
};

/** The largest error document that is read, in bytes. */
export const MAX_ERROR_BYTES = 64 * 1024;

/** Reads the error code from an error document. A code with unexpected characters becomes null. */
export function parseErrorResponse(status: number, document: string): S3ErrorResponse {
  const code = firstElementText(document, 'Code');
  return { status, code: code !== null && /^[A-Za-z0-9.]{1,64}$/.test(code) ? code : null };
}

/** True if a retry of the request may succeed. */
export function isRetryable({ status, code }: S3ErrorResponse): boolean {
  if (code !== null && (STORE_FULL_CODES.has(code) || SENTENCE_BY_CODE[code] !== undefined)) return false;
  return RETRYABLE_STATUSES.has(status) || (code !== null && RETRYABLE_CODES.has(code));
}

/** The store error for an error answer of the store. */
export function toStoreError(description: string, response: S3ErrorResponse): Error {
  const { status, code } = response;
  const label = code === null ? String(status) : `${status} ${code}`;
  if (code !== null && STORE_FULL_CODES.has(code)) return new StoreFullError(`${description} is full (${label})`);
  if (status === 507) return new StoreFullError(`${description} is full (${label})`);
  const sentence = code === null ? undefined : SENTENCE_BY_CODE[code];
  if (sentence !== undefined) return new StoreUnavailableError(`${description}: ${sentence} (${label})`);
  if ((code !== null && NOT_FOUND_CODES.has(code)) || (status === 404 && code === null)) {
    return new NotInStoreError(`${description} does not have this file`);
  }
  // An answer to HEAD has no document, and so no code: the status decides.
  if (status === 403)
    return new StoreUnavailableError(`${description}: ${SENTENCE_BY_CODE['AccessDenied']} (${label})`);
  if (status === 301 || status === 307) {
    return new StoreUnavailableError(`${description}: ${SENTENCE_BY_CODE['PermanentRedirect']} (${label})`);
  }
  return new StoreUnavailableError(`${description} answered ${label}`);
}

/** The store error for a store that cannot be reached, or did not answer in time. */
export function unreachableError(description: string, host: string, cause: unknown): StoreUnavailableError {
  const { code, name } = cause as { code?: unknown; name?: unknown };
  const label = typeof code === 'string' ? code : String(name);
  return new StoreUnavailableError(
    `${description} cannot be reached at ${host} (${label}): look at ${CONFIG_KEY}.endpoint`,
    {
      cause,
    },
  );
}
