import { parseRoute, pathOf } from './routes.ts';

/** Where a page is served, as the shell says it: `http.base-uri`, with a slash at its end. */
export interface Place {
  readonly base: URL;
  /** Of the page that was opened: another one than that of the base where a proxy or a name is not the configured one. */
  readonly pageOrigin: string;
  readonly projectName: string;
}

const LOOPBACK_NAMES: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]']);
const LINK_TOKEN_PATTERN = /^#?(kll_[A-Za-z0-9_-]{43})$/;

export function placeOf(page: Document, { origin }: Location): Place {
  const base = new URL(page.documentElement.dataset['base'] ?? '/', origin);
  return { base, pageOrigin: origin, projectName: page.title };
}

/** Whether pages of this address talk to a server of the same machine. */
export function isLoopback({ hostname }: URL): boolean {
  return LOOPBACK_NAMES.has(hostname);
}

/** A sign-in link that opened the page. */
export interface OpenedLink {
  readonly token: string;
  /** Whether the address is the one that the server prints. The one that people are sent is opened by scanners of mail, too. */
  readonly isPrinted: boolean;
}

/**
 * Takes the token of a sign-in link out of the address of the page, so that it is in no history and no bookmark. Null
 * where there is none.
 */
export function takeLink({ base }: Place, location: Location, history: History): OpenedLink | null {
  const token = LINK_TOKEN_PATTERN.exec(location.hash)?.[1] ?? null;
  const isPrinted = location.pathname === base.pathname;
  const path = pathOf(parseRoute(location.pathname, base.pathname), base.pathname);
  // The page for sign-in links has another path; the way back leads to neither.
  if (location.hash !== '' || location.pathname !== path) history.replaceState(null, '', path);
  return token === null ? null : { token, isPrinted };
}

/** The token in a link that somebody pasted, or null. */
export function linkTokenIn(text: string): string | null {
  return LINK_TOKEN_PATTERN.exec(text.trim().split('#').at(-1)!)?.[1] ?? null;
}
