import type { Mutant } from './mutant.ts';

/** Faults in what keeps the session cookie for pages of the own origin. */
export const BROWSER_MUTANTS: readonly Mutant[] = [
  {
    name: 'cookie-without-origin',
    promise: 'A page of another origin changes something with the session cookie of a visitor.',
    file: 'src/http/browser/own-page.ts',
    find: ': headers.origin === ownOrigin;',
    replace: ': headers.origin === undefined || headers.origin === ownOrigin;',
    tests: ['test/http/browser/own-page', '-t', 'does nothing'],
  },
  {
    name: 'cookie-of-same-site',
    promise: 'A page of a subdomain reads with the session cookie of a visitor.',
    file: 'src/http/browser/own-page.ts',
    find: "[undefined, 'same-origin', 'none']",
    replace: "[undefined, 'same-origin', 'same-site', 'none']",
    tests: ['test/http/browser/own-page', '-t', 'does nothing'],
  },
  {
    name: 'cookie-of-any-handshake',
    promise: 'A page that live.origins lets connect acts as its visitor.',
    file: 'src/live/transport/websocket-upgrades.ts',
    find: 'headers.origin === this.#ownOrigin ? klatchCookiesIn(headers.cookie) : NO_COOKIES',
    replace: 'headers.origin === this.#ownOrigin ? NO_COOKIES : klatchCookiesIn(headers.cookie)',
    tests: ['test/live/handshake-cookie'],
  },
  {
    name: 'browser-session-without-end',
    promise: 'A session of a browser that nobody uses lasts for ever.',
    file: 'src/operations/auth/sign-in.ts',
    find: 'if (idleTimeoutS !== null) await setIdleTimeout',
    replace: 'if (idleTimeoutS === 0) await setIdleTimeout',
    tests: ['test/http/browser/session', '-t', 'signs up with a code'],
  },
];
