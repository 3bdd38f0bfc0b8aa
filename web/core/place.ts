import { parseRoute, pathOf } from './routes.ts';

/**
 * The place where the page is served. `base` is `http.base-uri` with a slash at its end, as the page's HTML names it.
 */
export interface PagePlace {
  readonly base: URL;
  /**
   * The origin of the opened page. It differs from the origin of `base` if the person opened the server by another name
   * or proxy.
   */
  readonly pageOrigin: string;
  readonly projectName: string;
}

const LOOPBACK_NAMES: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]']);
const LINK_TOKEN_PATTERN = /^#?(kll_[A-Za-z0-9_-]{43})$/;
const INVITE_TOKEN_PATTERN = /^#([A-Za-z0-9_-]{43})$/;
/** The path below the base to which the page of an invitation leads. */
const INVITE_PATH = 'join';

export function placeOf(page: Document, { origin }: Location): PagePlace {
  const base = new URL(page.documentElement.dataset['base'] ?? '/', origin);
  return { base, pageOrigin: origin, projectName: page.title };
}

/** Whether the server at this address runs on the same machine as the browser. */
export function isLoopback({ hostname }: URL): boolean {
  return LOOPBACK_NAMES.has(hostname);
}

/** A sign-in link that somebody opened. */
export interface OpenedLink {
  readonly token: string;
  /**
   * Whether the link leads to the base itself, as the link that the server prints. A link that a person gets by mail
   * has another path, since mail scanners open links.
   */
  readonly isPrintedByServer: boolean;
}

/** The secrets in an address that somebody opened. */
export interface OpenedTokens {
  readonly link: OpenedLink | null;
  /** The token of an invitation into a group. */
  readonly invite: string | null;
}

/** Takes the tokens out of the address of the page, so that they are in no history and no bookmark. */
export function takeTokens({ base }: PagePlace, location: Location, history: History): OpenedTokens {
  const token = LINK_TOKEN_PATTERN.exec(location.hash)?.[1] ?? null;
  const isPrintedByServer = location.pathname === base.pathname;
  const isInvite = location.pathname === `${base.pathname}${INVITE_PATH}`;
  const invite = isInvite ? (INVITE_TOKEN_PATTERN.exec(location.hash)?.[1] ?? null) : null;
  const path = pathOf(parseRoute(location.pathname, base.pathname), base.pathname);
  // The pages for links and invitations have other paths. Replacing the entry keeps them out of the history.
  if (location.hash !== '' || location.pathname !== path) history.replaceState(null, '', path);
  return { link: token === null ? null : { token, isPrintedByServer }, invite };
}

/** The token in a sign-in link that somebody pasted, or null. */
export function linkTokenIn(text: string): string | null {
  return LINK_TOKEN_PATTERN.exec(text.trim().split('#').at(-1)!)?.[1] ?? null;
}
