import postgres from 'postgres';
import { DatabaseUnavailableError, CommitUnknownError } from '../db/database-error.ts';

/**
 * A database error in a form that can be posted to another thread; an error object would lose its class. The query, its
 * parameters and the rows in `detail` are not sent.
 */
export interface SerializedError {
  readonly kind: 'away' | 'lost' | 'postgresql' | 'other';
  readonly message: string;
  /** The SQLSTATE of PostgreSQL's answer, or the code of the system or the library. */
  readonly code: string | null;
  readonly constraint: string | null;
  readonly severity: string | null;
  readonly stack: string | null;
  readonly cause: SerializedError | null;
}

export function serializeErrorForThread(error: unknown): SerializedError {
  const { code, constraint_name: constraint, severity } = Object(error) as Record<string, unknown>;
  return {
    kind: kindOf(error),
    message: error instanceof Error ? error.message : typeof error,
    code: stringOrNull(code),
    constraint: stringOrNull(constraint),
    severity: stringOrNull(severity),
    stack: error instanceof Error ? stringOrNull(error.stack) : null,
    cause: error instanceof Error && error.cause !== undefined ? serializeErrorForThread(error.cause) : null,
  };
}

/** Rebuilds an error with its class, as far as callers distinguish classes. */
export function deserializeErrorFromThread(sent: SerializedError): Error {
  const error = rebuildError(sent);
  if (sent.stack !== null) error.stack = sent.stack;
  return error;
}

function rebuildError(sent: SerializedError): Error {
  const { kind, message, code, constraint, severity } = sent;
  const options = sent.cause === null ? {} : { cause: deserializeErrorFromThread(sent.cause) };
  if (kind === 'away') return new DatabaseUnavailableError(message, options);
  if (kind === 'lost') return new CommitUnknownError(message, options);
  if (kind === 'postgresql') {
    const errorFields = { message, code, severity, ...(constraint === null ? {} : { constraint_name: constraint }) };
    // The library declares only the constructor of Error; at run time the constructor takes the fields of PostgreSQL's
    // answer.
    return new postgres.PostgresError(errorFields as unknown as string);
  }
  return Object.assign(new Error(message, options), code === null ? {} : { code });
}

function kindOf(error: unknown): SerializedError['kind'] {
  if (error instanceof DatabaseUnavailableError) return 'away';
  if (error instanceof CommitUnknownError) return 'lost';
  return error instanceof postgres.PostgresError ? 'postgresql' : 'other';
}

function stringOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}
