import type { Pool } from '../../storage/db/pool.ts';
import { findStoreIds, UNASSIGNED_STORE_ID } from '../../storage/files/store-id.ts';
import { translateLostRead } from './database-errors.ts';

/** A browser's session ends when nobody has used it for this time. Each use restarts the time. */
export const BROWSER_SESSION_IDLE_S = 30 * 24 * 60 * 60;
/** The number of digits of the store id in the cookie's name. */
const COOKIE_NAME_DIGITS = 8;
/** The digits in the cookie's name while the installation has no store id yet. */
const UNASSIGNED_DIGITS = '0'.repeat(COOKIE_NAME_DIGITS);
const COOKIE_PATTERN = /^((?:__Host-|__Secure-)?klatch-[0-9a-f]{8})=(kls_[A-Za-z0-9_-]{43})$/;
/** At most this many cookies are read: a browser sends those of all servers of a host, whatever their ports. */
const MAX_COOKIES_OF_HOST = 16;

/** A cookie of this server, or of another Klatch server on the same host. */
export interface KlatchCookie {
  readonly name: string;
  readonly token: string;
}

/** The first 16 cookies of Klatch servers in a Cookie header, in the order of the header. */
export function klatchCookiesIn(header: string | undefined): readonly KlatchCookie[] {
  const cookies: KlatchCookie[] = [];
  for (const pair of (header ?? '').split(';')) {
    const match = COOKIE_PATTERN.exec(pair.trim());
    if (match !== null) cookies.push({ name: match[1]!, token: match[2]! });
    if (cookies.length === MAX_COOKIES_OF_HOST) break;
  }
  return cookies;
}

/** The digits at the end of the cookie's name. */
interface CookieNameDigits {
  readonly ownDigits: string;
  /**
   * The digits that the installation had before its backup was restored here: browsers still have that cookie. Null: no
   * backup was restored.
   */
  readonly formerDigits: string | null;
}

/**
 * The cookie that carries the token of a session in a browser, for pages of `http.base-uri` alone. Its name ends with
 * digits of the store id: cookies ignore ports, and two servers of one host must not overwrite each other's cookie.
 */
export class SessionCookie {
  /** The origin of `http.base-uri`: no other page may use the cookie. */
  readonly origin: string;
  readonly #cookiePath: string;
  readonly #cookieNamePrefix: '' | '__Host-' | '__Secure-';
  readonly #pool: Pick<Pool, 'run'>;
  /** Null until the digits are read from a store id, which does not change once it exists. */
  #knownDigits: CookieNameDigits | null = null;

  constructor(baseUri: string, pool: Pick<Pool, 'run'>) {
    const { origin, protocol, pathname } = new URL(baseUri);
    this.origin = origin;
    this.#cookiePath = pathname;
    this.#cookieNamePrefix = protocol !== 'https:' ? '' : pathname === '/' ? '__Host-' : '__Secure-';
    this.#pool = pool;
  }

  /**
   * The token in this installation's cookie. Without that cookie, the token in the cookie that the installation had
   * before its backup was restored here. Null: neither cookie is there. Rejects with `database_unavailable`.
   */
  async tokenAmong(cookies: readonly KlatchCookie[]): Promise<string | null> {
    if (cookies.length === 0) return null;
    const { ownDigits: own, formerDigits: former } = await this.#digits();
    const tokenBy = (digits: string): string | null =>
      cookies.find(({ name }) => name === this.#nameWith(digits))?.token ?? null;
    return tokenBy(own) ?? (former === null ? null : tokenBy(former));
  }

  /**
   * Resolves to a function that makes the value of a Set-Cookie header. With a token, the value sets the cookie or
   * renews it. With null, it removes the cookie. With `isPersistent: false`, the browser deletes the cookie when the
   * browser is closed. Rejects with `database_unavailable`.
   */
  async serializer(): Promise<(token: string | null, options?: { readonly isPersistent: boolean }) => string> {
    const name = this.#nameWith((await this.#digits()).ownDigits);
    const secure = this.#cookieNamePrefix === '' ? '' : '; Secure';
    return (token, { isPersistent } = { isPersistent: true }) => {
      const maxAge = token === null ? '; Max-Age=0' : isPersistent ? `; Max-Age=${BROWSER_SESSION_IDLE_S}` : '';
      return `${name}=${token ?? ''}; Path=${this.#cookiePath}${maxAge}; HttpOnly; SameSite=Strict${secure}`;
    };
  }

  #nameWith(digits: string): string {
    return `${this.#cookieNamePrefix}klatch-${digits}`;
  }

  /**
   * Reads the store ids from the database and not from the store: so all nodes use the same name, even while the store
   * is unavailable.
   */
  async #digits(): Promise<CookieNameDigits> {
    if (this.#knownDigits !== null) return this.#knownDigits;
    const { current, former: formerId } = await translateLostRead(this.#pool.run(findStoreIds));
    const formerDigits = formerId?.slice(0, COOKIE_NAME_DIGITS) ?? null;
    if (current === null || current === UNASSIGNED_STORE_ID) return { ownDigits: UNASSIGNED_DIGITS, formerDigits };
    this.#knownDigits = { ownDigits: current.slice(0, COOKIE_NAME_DIGITS), formerDigits };
    return this.#knownDigits;
  }
}
