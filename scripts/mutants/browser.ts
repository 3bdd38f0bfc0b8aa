import type { Mutant } from './mutant.ts';

/** Faults in what keeps the session cookie for pages of the own origin, and in what the page shows and sends. */
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
    find: 'if (lifetime !== null) await setLifetime',
    replace: 'if (lifetime === undefined) await setLifetime',
    tests: ['test/http/browser/session', '-t', 'signs up with a code'],
  },
  {
    name: 'session-outlives-its-end',
    promise: 'A sign-in that says when its session ends gets a session that lasts.',
    file: 'src/operations/auth/sign-in.ts',
    find: 'return expiresInS === undefined ? byDefault : { expiresInS };',
    replace: 'return expiresInS === undefined ? byDefault : null;',
    tests: ['test/http/browser/session', '-t', 'was asked for an end'],
  },
  {
    name: 'link-of-any-scheme',
    promise: 'A text that names javascript: becomes a link.',
    file: 'web/text/tokenize.ts',
    find: 'url !== null && LINK_PROTOCOLS.has(url.protocol)',
    replace: 'url !== null',
    tests: ['test/web/tokenize', '-t', 'the target of'],
  },
  {
    name: 'own-message-twice',
    promise: 'The page shows a message of its own twice where the change comes before the answer.',
    file: 'web/core/send-queue.ts',
    find: 'this.#byClientId.get(clientId)?.entry.conversation === conversation',
    replace: 'this.#byClientId.get(clientId)?.seq === conversation',
    tests: ['test/web/send-queue', '-t', 'shows an own message once'],
  },
  {
    name: 'unread-from-an-old-list',
    promise: 'A list that is older than a change that was heard sets the unread count back.',
    file: 'web/core/unread.ts',
    find: 'readSeq: Math.max(known.readSeq, listed.readSeq)',
    replace: 'readSeq: listed.readSeq',
    tests: ['test/web/unread', '-t', 'is not set back'],
  },
];
