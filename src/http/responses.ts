import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ErrorRequestHandler, Request, Response } from 'express';
import { errorKinds, KlatchError, type ErrorCode } from '../errors.ts';
import type { Log } from '../log.ts';
import { publicError } from '../operations/core/database-errors.ts';
import { callerRouteOf, type Answer } from './callers/caller-route.ts';

/** Headers of every answer, also of an error. */
export const jsonResponseHeaders = {
  'content-type': 'application/json; charset=utf-8',
  'cache-control': 'no-store',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
} as const;

const textResponseHeaders = { ...jsonResponseHeaders, 'content-type': 'text/plain; charset=utf-8' } as const;

/** An answer of this status has no body. */
const NO_CONTENT = 204;

/** The refusal of a body whose source has used up its parse time. */
export const parseBudgetExhaustedError = (): KlatchError => new KlatchError('source_rate_limited');

/** Sends a JSON answer. Does nothing if the request was answered already, for example because its time was up. */
export function sendJson(
  res: ServerResponse,
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): void {
  // `res.json` is not used: it computes an ETag, which takes time, and which `no-store` makes useless.
  sendText(res, { status, text: JSON.stringify(body) }, headers, jsonResponseHeaders);
}

/**
 * Sends an answer in the form of a {@link CallerRoute}. Like `sendJson`, does nothing if an answer was sent already.
 */
export function sendAnswer(res: ServerResponse, { status, body }: Answer, headers: Record<string, string> = {}): void {
  if (typeof body !== 'string' && body !== null) sendJson(res, status, body, headers);
  else sendText(res, { status, text: body ?? '' }, headers, textResponseHeaders);
}

function sendText(
  res: ServerResponse,
  { status, text }: { readonly status: number; readonly text: string },
  headers: Readonly<Record<string, string>>,
  fixedHeaders: Readonly<Record<string, string>>,
): void {
  if (res.headersSent || res.destroyed) return;
  const hasBody = status !== NO_CONTENT;
  const sentHeaders: Record<string, string | number> = { ...headers, ...fixedHeaders };
  if (hasBody) sentHeaders['content-length'] = Buffer.byteLength(text);
  res.writeHead(status, sentHeaders);
  res.end(res.req.method === 'HEAD' || !hasBody ? undefined : text);
}

/** A response with the code of the error that it shows, for `request-counts.ts`. */
export type TaggedResponse = ServerResponse & { errorCode?: ErrorCode };

/** Notes the error of an answer that is about to be sent, so that it is counted. */
export function tagErrorCode(res: ServerResponse, code: ErrorCode): void {
  if (!res.headersSent && !res.destroyed) (res as TaggedResponse).errorCode = code;
}

/** Errors at these paths carry their code as well: callers of operations and uploads use it. */
const PATHS_WITH_ERROR_CODE = ['/v1/api/', '/v1/files', '/v1/session'];

/** The path of a request as it was sent; a mounted router removes the beginning of `url`. */
export function originalUrlOf(req: IncomingMessage): string {
  return (req as Partial<Request>).originalUrl ?? req.url ?? '';
}

/**
 * Whether the request asks how far a resumable upload is. A tus client continues the upload only if it gets the offset,
 * or learns that the upload is locked. After any other refusal it sends everything again (tus-js-client 4.3 does so).
 */
const isUploadStatusRequest = (req: IncomingMessage): boolean =>
  req.method === 'HEAD' && originalUrlOf(req).startsWith('/v1/files/uploads/');
const STATUSES_SHOWN_AS_UPLOAD_LOCKED: ReadonlySet<number> = new Set([429, 503]);

/** Sends an error. All errors of handlers are shown over HTTP here, and nowhere else. */
export function sendError(res: ServerResponse, error: KlatchError, extraBodyFields: Record<string, string> = {}): void {
  const headers: Record<string, string> =
    error.retryAfterS === null ? {} : { 'retry-after': String(error.retryAfterS) };
  // For an unknown hook, the specification has the error's text as `status`, so `status` and `message` both carry it.
  const status = error.code === 'hook_not_found' ? { status: error.message } : {};
  tagErrorCode(res, error.code);
  const dialect = callerRouteOf(res.req)?.dialect ?? null;
  if (dialect !== null) {
    sendAnswer(res, dialect.failure(error), headers);
    return;
  }
  const path = originalUrlOf(res.req);
  const code = PATHS_WITH_ERROR_CODE.some((prefix) => path.startsWith(prefix)) ? { code: error.code } : {};
  const shownStatus =
    STATUSES_SHOWN_AS_UPLOAD_LOCKED.has(error.status) && isUploadStatusRequest(res.req)
      ? errorKinds.upload_locked.status
      : error.status;
  sendJson(res, shownStatus, { message: error.message, ...code, ...status, ...extraBodyFields }, headers);
}

/** Answers 405 with the allowed methods; OPTIONS gets the same list in a 204. */
export function sendMethodNotAllowed(req: Request, res: Response, allowed: readonly string[]): void {
  const allow = [...allowed, 'OPTIONS'].join(', ');
  if (req.method === 'OPTIONS') res.writeHead(204, { allow, 'cache-control': 'no-store' }).end();
  else sendJson(res, 405, { message: `This method is not allowed here, only ${allow}` }, { allow });
}

/**
 * An error that Express threw about a request, with this server's sentence: Express's own can quote the URL. Null for
 * other errors.
 */
function expressError(error: unknown): KlatchError | null {
  const { status } = error as { status?: number };
  return status !== undefined && status >= 400 && status < 500 ? new KlatchError('invalid_input') : null;
}

/** Answers with a thrown error. Logs an internal error with its cause, without URL and body. */
export function sendThrownError(
  res: ServerResponse,
  error: unknown,
  options: { log: Log; extraBodyFields?: Record<string, string>; operation?: string | undefined },
): void {
  const shown = error instanceof KlatchError ? error : (expressError(error) ?? publicError(error));
  if (shown.code === 'internal') {
    const operation = options.operation === undefined ? {} : { operation: options.operation };
    options.log.error('a request failed', { ...operation, error });
  }
  sendError(res, shown, options.extraBodyFields);
}

/** The last handler of Express, which answers with an error that another handler threw. */
export function errorHandler(log: Log): ErrorRequestHandler {
  return (error: unknown, _req, res, _next) => sendThrownError(res, error, { log });
}
