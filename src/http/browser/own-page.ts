import type { IncomingMessage } from 'node:http';
import { KlatchError } from '../../errors.ts';

/** Methods that change nothing. Browsers send no Origin with such requests to the page's own server. */
const SAFE_METHODS: ReadonlySet<string | undefined> = new Set(['GET', 'HEAD']);
/**
 * The accepted values of Sec-Fetch-Site. A browser omits the header if it does not trust the connection (no secure
 * context), and an old client does not know the header.
 */
const OWN_FETCH_SITES: ReadonlySet<string | undefined> = new Set([undefined, 'same-origin', 'none']);

/**
 * Throws `forbidden` unless a request that brings a cookie comes from a page of `ownOrigin`. `SameSite=Strict` keeps
 * the cookie from other sites, but not from other ports and subdomains of this site.
 */
export function requireOwnPage(
  { method, headers }: Pick<IncomingMessage, 'method' | 'headers'>,
  ownOrigin: string,
): void {
  const isFromOwnPage = SAFE_METHODS.has(method)
    ? OWN_FETCH_SITES.has(headers['sec-fetch-site'])
    : headers.origin === ownOrigin;
  if (isFromOwnPage) return;
  const sentence = `The session cookie is for pages of ${ownOrigin} (http.base-uri), and this request comes from elsewhere: open Klatch there`;
  throw new KlatchError('forbidden', { sentence });
}
