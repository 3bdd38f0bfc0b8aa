/**
 * Refusals that end by themselves, by the server's stable codes, with the seconds after which a repeat may succeed.
 * Codes that are newer than this client are taken for final.
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

/** The connection could not be made, or broke. What was under way on it may have been done. */
export class ConnectionError extends Error {
  override readonly name = 'ConnectionError';
}

/** The server did not answer a request in time. It may have been done. */
export class AnswerTimeoutError extends Error {
  override readonly name = 'AnswerTimeoutError';
}

/** There are as many requests under way as there may be; this one was not sent. */
export class TooManyPendingRequestsError extends Error {
  override readonly name = 'TooManyPendingRequestsError';
}

/** What answers there is not a Klatch server, or speaks in another way than this client. */
export class ProtocolError extends Error {
  override readonly name = 'ProtocolError';
}

/** The session is over: somebody has to sign in again. */
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

  /** Seconds after which a repeat may succeed; null where a repeat mends nothing. */
  get assumedRetrySIfTransient(): number | null {
    return this.code === null ? null : (RETRY_S_BY_TRANSIENT_CODE.get(this.code) ?? null);
  }
}

/** Ends by itself: the same request may succeed later. */
export function isTransient(error: unknown): boolean {
  if (error instanceof ServerError) return error.assumedRetrySIfTransient !== null;
  return error instanceof ConnectionError || error instanceof AnswerTimeoutError;
}
