/** All categories of failures; see {@link FailureCategory}. */
export const failureCategories = [
  'timeout',
  'refused',
  'tls',
  'dns',
  'status',
  'address policy',
  'connection',
  'signature',
] as const;

/**
 * Why an attempt failed, as holders of the integration token may see it: only a category. `connection`: an open
 * connection failed (reset, closed, or not HTTP). `signature`: this server does not have the key with which the hook
 * asks it to sign.
 */
export type FailureCategory = (typeof failureCategories)[number];

const REFUSED_CODES: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'EHOSTUNREACH',
  'EHOSTDOWN',
  'ENETUNREACH',
  'ENETDOWN',
  'EADDRNOTAVAIL',
  'EACCES',
  'EPERM',
]);
const DNS_CODES: ReadonlySet<string> = new Set(['ENOTFOUND', 'ENODATA', 'EAI_AGAIN', 'EAI_FAIL', 'EAI_NODATA']);
const TIMEOUT_CODES: ReadonlySet<string> = new Set(['ETIMEDOUT', 'UND_ERR_CONNECT_TIMEOUT', 'UND_ERR_HEADERS_TIMEOUT']);
const TLS_ERROR_CODE_PATTERN =
  /^(?:CERT_|CRL_|ERR_TLS|ERR_SSL|ERR_OSSL|EPROTO$|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_|HOSTNAME_MISMATCH$|INVALID_(?:CA|PURPOSE)$|PATH_LENGTH|ERROR_IN_CERT)/;

/** Thrown when no connection could be opened. Nothing of the request was written, so the request may be repeated. */
export class ConnectFailure extends Error {
  override readonly name = 'ConnectFailure';
  readonly category: FailureCategory;
  /** For the server's log: an error code or the rule of the address policy, and the address; never a path or query. */
  readonly detail: string;

  constructor(category: FailureCategory, detail: string) {
    super(detail);
    this.category = category;
    this.detail = detail;
  }
}

/** The category of a network error: a {@link ConnectFailure}, or an error with a code of Node.js, OpenSSL or undici. */
export function failureCategoryOf(error: Error): FailureCategory {
  if (error instanceof ConnectFailure) return error.category;
  const code = codeOrNameOf(error);
  if (REFUSED_CODES.has(code)) return 'refused';
  if (DNS_CODES.has(code)) return 'dns';
  if (TIMEOUT_CODES.has(code)) return 'timeout';
  return TLS_ERROR_CODE_PATTERN.test(code) ? 'tls' : 'connection';
}

/**
 * The detail of a network error for the log. It does not contain the error's message, which can quote data of the other
 * side.
 */
export function loggableDetailOf(error: Error): string {
  return error instanceof ConnectFailure ? error.detail : codeOrNameOf(error);
}

/** The `code` of an error; the error's name if it has none. */
export function codeOrNameOf(error: Error): string {
  const { code } = error as { code?: unknown };
  return typeof code === 'string' ? code : error.name;
}
