import type { IncomingMessage } from 'node:http';
import type { CallerFormat } from '../../callers/core/caller-format.ts';
import type { Ignored } from '../../callers/core/message-form.ts';
import type { KlatchError } from '../../errors.ts';

/** A message as it was stored. */
interface PostedMessage {
  /** "7:42", with an epoch where the log has one. */
  readonly id: string;
  readonly text: string;
}

/** Status and body of an answer: a string is sent as plain text, null as nothing, anything else as JSON. */
export interface Answer {
  readonly status: number;
  readonly body: unknown;
}

/** How the imitated product answers: callers look for its keys before they call a post a success. */
export interface AnswerDialect {
  readonly success: (posted: PostedMessage, req: IncomingMessage) => Answer;
  /** The request was understood, and nothing is posted for it. */
  readonly ignored: (event: Ignored) => Answer;
  /**
   * The answer to a refused request; the server adds `Retry-After`. A dialect does not change a status that asks for a
   * repeat (429, 503): it is that of the catalogue of errors.
   */
  readonly failure: (error: KlatchError) => Answer;
}

/** The format and the dialect that the path of a request names. */
interface CallerRoute {
  /** Null: the shape of the body decides. */
  readonly format: CallerFormat | null;
  /** Null: answers are as on the group's own address. */
  readonly dialect: AnswerDialect | null;
}

type RoutedRequest = IncomingMessage & { callerRoute?: CallerRoute; readFormat?: CallerFormat };

/** From here on every answer to the request is in the route's dialect, whichever code sends it. */
export function setCallerRoute(req: IncomingMessage, route: CallerRoute): void {
  (req as RoutedRequest).callerRoute = route;
}

/** Null for one of this server's own paths. */
export function callerRouteOf(req: IncomingMessage): CallerRoute | null {
  return (req as RoutedRequest).callerRoute ?? null;
}

/** Notes the format that the body of a request is read as. */
export function noteFormat(req: IncomingMessage, format: CallerFormat): void {
  (req as RoutedRequest).readFormat = format;
}

/**
 * The name of the format that the body was read as, or else of the one that the path names; null if there is neither.
 */
export function formatNameOf(req: IncomingMessage): string | null {
  return ((req as RoutedRequest).readFormat ?? callerRouteOf(req)?.format)?.name ?? null;
}
