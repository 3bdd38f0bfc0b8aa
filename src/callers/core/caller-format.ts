import type { Ignored, MessageForm } from './message-form.ts';
import type { JsonObject } from './values.ts';

/** A program's request: a JSON object or the fields of a form, with the headers and the query. */
export interface CallerRequest {
  readonly body: JsonObject;
  /** Headers by lower-case name. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly query: URLSearchParams;
}

/** One foreign format. Pure: nothing is fetched, stored or remembered, and `read` never throws. */
export interface CallerFormat {
  /** In lower case with hyphens: for metrics, and as the suffix that forces the format. */
  readonly name: string;
  /**
   * Whether the request's shape is surely this format's. Only the first level of the body is looked at, so that the
   * comparison costs next to nothing.
   */
  readonly matches: (request: CallerRequest) => boolean;
  /** Whether the senders of this format sign their requests if they are given a secret. */
  readonly isSignedBySenders?: boolean;
  /** For a suffix that stands for several formats: the format of this body. */
  readonly delegateOf?: (request: CallerRequest) => CallerFormat;
  readonly read: (request: CallerRequest) => MessageForm | Ignored;
}

const GIT_HEADERS = ['x-gitea-event', 'x-gogs-event', 'x-forgejo-event', 'x-github-event', 'x-gitlab-event'] as const;

/**
 * Whether a git host sent the request, in whatever format: Gitea sends its own headers even with bodies in the formats
 * of chats.
 */
export function isFromGitHost({ headers }: Pick<CallerRequest, 'headers'>): boolean {
  return GIT_HEADERS.some((name) => (headers[name] ?? '') !== '');
}
