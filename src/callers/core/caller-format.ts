import type { IgnoredEvent, MessageForm } from './message-form.ts';
import type { JsonObject } from './values.ts';

/** A request that a program posts: its body (a JSON object or the fields of an HTTP form), headers and query. */
export interface CallerRequest {
  readonly body: JsonObject;
  /** Headers by lower-case name. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly query: URLSearchParams;
}

/**
 * The format of another product's posts. Its functions are pure: they fetch, store and remember nothing. `read` never
 * throws.
 */
export interface CallerFormat {
  /**
   * The format's name in lower case with hyphens. It is used in metrics, and as the suffix of a webhook URL that
   * selects the format.
   */
  readonly name: string;
  /**
   * True only if the request is surely in this format. Reads only the first level of the body, so that the check is
   * cheap.
   */
  readonly matches: (request: CallerRequest) => boolean;
  /** True if the programs that send this format can sign their requests with a secret. */
  readonly isSignedBySenders?: boolean;
  /** Only if the name stands for several formats: returns the format of this body. */
  readonly delegateOf?: (request: CallerRequest) => CallerFormat;
  readonly read: (request: CallerRequest) => MessageForm | IgnoredEvent;
}

const GIT_HEADERS = ['x-gitea-event', 'x-gogs-event', 'x-forgejo-event', 'x-github-event', 'x-gitlab-event'] as const;

/**
 * True if a git host sent the request, by its headers. Gitea sends its own headers even with a body in the format of
 * Slack or Discord.
 */
export function isFromGitHost({ headers }: Pick<CallerRequest, 'headers'>): boolean {
  return GIT_HEADERS.some((name) => (headers[name] ?? '') !== '');
}
