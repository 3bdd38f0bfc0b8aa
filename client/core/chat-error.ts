import { errorKinds, type ErrorCode } from '../../src/errors.ts';

/** The connection could not be made, or broke. What was under way on it may have been done. */
export class ConnectionError extends Error {
  override readonly name = 'ConnectionError';
}

/** The server did not answer a request in time. It may have been done. */
export class AnswerTimeoutError extends Error {
  override readonly name = 'AnswerTimeoutError';
}

/** There are as many requests under way as there may be; this one was not sent. */
export class TooManyRequestsError extends Error {
  override readonly name = 'TooManyRequestsError';
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
export class StoppedError extends Error {
  override readonly name = 'StoppedError';
}

/** The server refused a request; `message` is its public sentence. */
export class ServerError extends Error {
  override readonly name = 'ServerError';
  /** The catalogue's stable code; null where the answer has none, or one that is newer than this client. */
  readonly code: ErrorCode | null;

  constructor(code: string | undefined, message: string) {
    super(message);
    this.code = code !== undefined && Object.hasOwn(errorKinds, code) ? (code as ErrorCode) : null;
  }

  /** Seconds after which a repeat may succeed; null where a repeat mends nothing. */
  get retryAfterS(): number | null {
    return this.code === null ? null : (errorKinds[this.code].retryAfterS ?? null);
  }
}

/** Ends by itself: the same request may succeed later. */
export function isTransient(error: unknown): boolean {
  if (error instanceof ServerError) return error.retryAfterS !== null;
  return error instanceof ConnectionError || error instanceof AnswerTimeoutError;
}
