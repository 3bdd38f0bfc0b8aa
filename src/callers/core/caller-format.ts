import type { Ignored, MessageForm } from './message-form.ts';
import type { JsonObject } from './values.ts';

/** A program's request: a JSON object, or the fields of a form, with headers and query. */
export interface CallerRequest {
  readonly body: JsonObject;
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly query: URLSearchParams;
}

/** One foreign format. Pure: it fetches, stores and caches nothing, and `read` never throws. */
export interface CallerFormat {
  /** In lower case with hyphens: for metrics, and as the suffix that forces the format. */
  readonly name: string;
  /** Whether the shape is surely this format's. It checks only the first level, so it costs next to nothing. */
  readonly matches: (request: CallerRequest) => boolean;
  /** Its senders sign their requests if they have a secret. */
  readonly isSignedBySenders?: boolean;
  /** For a suffix of several formats: picks the format that the body has. */
  readonly delegateOf?: (request: CallerRequest) => CallerFormat;
  readonly read: (request: CallerRequest) => MessageForm | Ignored;
}

const GIT_HEADERS = ['x-gitea-event', 'x-gogs-event', 'x-forgejo-event', 'x-github-event', 'x-gitlab-event'] as const;

/** Whether a git host sent it, in any format: Gitea sends its headers with chat formats too. */
export function isFromGitHost({ headers }: Pick<CallerRequest, 'headers'>): boolean {
  return GIT_HEADERS.some((name) => (headers[name] ?? '') !== '');
}
