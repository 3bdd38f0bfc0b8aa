/**
 * Transient refusals: the server's stable codes, with the seconds after which a repeat may succeed. The client treats
 * codes that it does not know as final.
 */
const RETRY_S_BY_TRANSIENT_CODE: ReadonlyMap<string, number> = new Map([
  ['signing_changed', 1],
  ['provider_unavailable', 60],
  ['rate_limited', 5],
  ['too_many_uploads', 10],
  ['storage_unavailable', 10],
  ['overloaded', 2],
  ['token_rate_limited', 5],
  ['too_many_large_requests', 2],
  ['source_rate_limited', 2],
  ['ping_rate_limited', 5],
  ['too_many_retries', 60],
  ['database_unavailable', 2],
  ['outcome_unknown', 2],
  ['change_unconfirmed', 10],
  ['starting', 2],
  ['stopping', 5],
]);

/** The client could not connect, or the connection broke. The server may have carried out the requests in progress. */
export class ConnectionError extends Error {
  override readonly name = 'ConnectionError';
}

/** The server did not answer a request in time. It may have carried the request out. */
export class AnswerTimeoutError extends Error {
  override readonly name = 'AnswerTimeoutError';
}

/** The bound of concurrent requests is reached; the client did not send this request. */
export class TooManyPendingRequestsError extends Error {
  override readonly name = 'TooManyPendingRequestsError';
}

/** The peer is not a Klatch server, or uses a protocol that this client does not know. */
export class ProtocolError extends Error {
  override readonly name = 'ProtocolError';
}

/** The session has ended: the person has to sign in again. */
export class SessionOverError extends Error {
  override readonly name = 'SessionOverError';
}

/** The client was stopped. */
export class ClientStoppedError extends Error {
  override readonly name = 'ClientStoppedError';
}

/** The server refused a request; `message` is its public sentence. */
export class ServerError extends Error {
  override readonly name = 'ServerError';
  /** The server's stable code; null where the answer has none. */
  readonly code: string | null;

  constructor(code: string | undefined, message: string) {
    super(message);
    this.code = code ?? null;
  }

  /** Seconds after which a repeat may succeed; null where a repeat cannot help. */
  get assumedRetrySIfTransient(): number | null {
    return this.code === null ? null : (RETRY_S_BY_TRANSIENT_CODE.get(this.code) ?? null);
  }
}

/** Whether the same request may succeed later. */
export function isTransient(error: unknown): boolean {
  if (error instanceof ServerError) return error.assumedRetrySIfTransient !== null;
  return error instanceof ConnectionError || error instanceof AnswerTimeoutError;
}
