import type { IncomingMessage } from 'node:http';
import type { CallerFormat } from '../../callers/core/caller-format.ts';
import type { IgnoredEvent } from '../../callers/core/message-form.ts';
import type { KlatchError } from '../../errors.ts';

/** A message as it was stored. */
interface PostedMessage {
  /** The message's id: "7:42", followed by the log epoch unless that is 0. */
  readonly id: string;
  readonly text: string;
}

/** Status and body of an answer: a string is sent as plain text, null as nothing, anything else as JSON. */
export interface Answer {
  readonly status: number;
  readonly body: unknown;
}

/** The answers of an imitated product: callers look for the product's fields before they call a post a success. */
export interface AnswerDialect {
  readonly success: (posted: PostedMessage, req: IncomingMessage) => Answer;
  /** The answer to a request that was understood and posts nothing. */
  readonly ignored: (event: IgnoredEvent) => Answer;
  /**
   * The answer to a refused request; the server adds `Retry-After`. If the error's own status asks for a repeat (429,
   * 503), the dialect keeps that status.
   */
  readonly failure: (error: KlatchError) => Answer;
}

/** The format and the dialect that the path of a request names. */
interface CallerRoute {
  /** The format of the body; null: the shape of the body decides. */
  readonly format: CallerFormat | null;
  /** The form of the answers; null: the same as at the group's own address. */
  readonly dialect: AnswerDialect | null;
}

type RoutedRequest = IncomingMessage & { callerRoute?: CallerRoute; bodyFormat?: CallerFormat };

/** Sets the route of a request. From here on every answer is in the route's dialect, whichever code sends it. */
export function setCallerRoute(req: IncomingMessage, route: CallerRoute): void {
  (req as RoutedRequest).callerRoute = route;
}

/** The route of a request; null for one of this server's own paths. */
export function callerRouteOf(req: IncomingMessage): CallerRoute | null {
  return (req as RoutedRequest).callerRoute ?? null;
}

/** Notes the format that the body of a request is read as. */
export function noteFormat(req: IncomingMessage, format: CallerFormat): void {
  (req as RoutedRequest).bodyFormat = format;
}

/**
 * The name of the format that the body was read as, or else of the one that the path names; null if there is neither.
 */
export function formatNameOf(req: IncomingMessage): string | null {
  return ((req as RoutedRequest).bodyFormat ?? callerRouteOf(req)?.format)?.name ?? null;
}
