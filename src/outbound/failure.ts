/** Every {@link FailureCategory}. */
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
 * Why an attempt failed, as token holders may see it (contract: errors are categories). `connection`: a failure on an
 * open connection, such as reset, closed, or not HTTP. `signature`: a failure of this server, which lacks the key that
 * the hook asks it to sign with.
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
const TLS_CODE =
  /^(?:CERT_|CRL_|ERR_TLS|ERR_SSL|ERR_OSSL|EPROTO$|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_|HOSTNAME_MISMATCH$|INVALID_(?:CA|PURPOSE)$|PATH_LENGTH|ERROR_IN_CERT)/;

/** No connection could be opened. Nothing of the request was written, so it is safe to repeat. */
export class ConnectFailure extends Error {
  override readonly name = 'ConnectFailure';
  readonly category: FailureCategory;
  /** For the server's log: error code or address rule, and the address; never a path or query. */
  readonly detail: string;

  constructor(category: FailureCategory, detail: string) {
    super(detail);
    this.category = category;
    this.detail = detail;
  }
}

/** The category of a network error: the codes of Node.js, OpenSSL and undici, and {@link ConnectFailure}. */
export function failureCategoryOf(error: Error): FailureCategory {
  if (error instanceof ConnectFailure) return error.category;
  const code = codeOrNameOf(error);
  if (REFUSED_CODES.has(code)) return 'refused';
  if (DNS_CODES.has(code)) return 'dns';
  if (TIMEOUT_CODES.has(code)) return 'timeout';
  return TLS_CODE.test(code) ? 'tls' : 'connection';
}

/** The loggable detail of a network error. Messages are left out: they can quote the peer's data. */
export function loggableDetailOf(error: Error): string {
  return error instanceof ConnectFailure ? error.detail : codeOrNameOf(error);
}

/** The `code` of an error, else its class. */
export function codeOrNameOf(error: Error): string {
  const { code } = error as { code?: unknown };
  return typeof code === 'string' ? code : error.name;
}
