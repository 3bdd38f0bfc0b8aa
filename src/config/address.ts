import { isIP, isIPv4, isIPv6 } from 'node:net';
import { domainToASCII } from 'node:url';
import type { Value } from '../../packages/hocon/src/index.ts';
import { editDistance } from './edit-distance.ts';
import { scalarValueType } from './value-types.ts';
import type { ValueType, ScalarResult } from './value-types.ts';

const DNS_LABEL = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/;
/**
 * The last label of a name that is no host name: resolvers and `URL` read a name whose last label is a number as an
 * IPv4 address.
 */
const NUMERIC_LABEL = /^(?:\d+|0x[0-9a-f]*)$/;

/** True if a text is an IP address or a valid host name; international names are valid. */
function isHost(host: string): boolean {
  if (isIP(host) !== 0) return true;
  if (/[\s%/\\:@?#[\]]/.test(host) || host === '') return false;
  const labels = host.replace(/\.$/, '').toLowerCase().split('.');
  if (NUMERIC_LABEL.test(labels.at(-1)!)) return false;
  const ascii = domainToASCII(labels.join('.'));
  return (
    ascii.length <= 253 && ascii !== '' && isIP(ascii) === 0 && ascii.split('.').every((label) => DNS_LABEL.test(label))
  );
}

/** The parts of a URL `scheme://host:port/path`, without the host. */
interface UrlPartsExceptHost {
  readonly scheme: string;
  readonly port: string | null;
  readonly path: string;
}

const URL_PATTERN = /^([a-z][a-z0-9+.-]*):\/\/(\[[^\]]*\]|[^:/?#@[\]\\]*)(?::(\d*))?(\/[^?#\\]*)?$/i;

/**
 * Splits a URL into its parts, or returns a sentence that says what is wrong with it. Stricter than URL parsers, which
 * silently repair many mistakes.
 */
function parseUrlParts(text: string): UrlPartsExceptHost | string {
  if (/[\s\p{Cc}]/u.test(text)) return 'it holds white space';
  const authority = /^[a-z][a-z0-9+.-]*:\/\/([^/?#]*)/i.exec(text)?.[1];
  if (authority === undefined) return 'it does not begin with a scheme and "://"';
  if (authority.includes('@')) return 'a user name or password does not belong in it';
  if (/[?#]/.test(text)) return 'a query or fragment does not belong in it';
  const [, scheme, host, port, path = ''] = URL_PATTERN.exec(text) ?? [];
  if (scheme === undefined || host === undefined) return 'the host cannot be read';
  const isBracketed = host.startsWith('[');
  if (!(isBracketed ? isIPv6(host.slice(1, -1)) && !host.includes('%') : isHost(host)))
    return 'the host cannot be read';
  if (port !== undefined && !(/^\d{1,5}$/.test(port) && Number(port) >= 1 && Number(port) <= 65_535)) {
    return 'the port is not from 1 to 65535';
  }
  return { scheme: scheme.toLowerCase(), port: port ?? null, path };
}

/** Checks that a value is a URL with one of these schemes. `finish` then makes the result of the URL. */
function validateUrlValue(
  value: Value,
  schemes: readonly string[],
  finish: (text: string, address: UrlPartsExceptHost) => ScalarResult<string>,
): ScalarResult<string> {
  if (value.kind !== 'string') return {};
  const address = parseUrlParts(value.text);
  if (typeof address === 'string') return { refusalReason: address };
  return schemes.includes(address.scheme) ? finish(value.text, address) : {};
}

/**
 * The type of an absolute http(s) URL without query and fragment. The result is normalised, without a trailing slash.
 * `quotableInMessages` must be true only for public URLs: others may contain a token in their path.
 */
export function absoluteHttpUrlValueType(
  expected: string,
  {
    schemes = ['http', 'https'],
    quotableInMessages = false,
  }: { readonly schemes?: readonly string[]; readonly quotableInMessages?: boolean } = {},
): ValueType<string> {
  const judge = (value: Value): ScalarResult<string> =>
    validateUrlValue(value, schemes, (text) => {
      const url = URL.parse(text);
      return url === null ? { refusalReason: 'the host cannot be read' } : { value: url.href.replace(/\/+$/, '') };
    });
  return scalarValueType(expected, judge, { quotableInMessages });
}

/**
 * The type of a URL to which clients connect: WebSocket, or JSON lines over TCP. A TCP URL must have a port and no
 * path.
 */
export function clientEndpointUrl(): ValueType<string> {
  const expected = 'an address that begins with ws://, wss://, tcp:// or tls://';
  const judge = (value: Value): ScalarResult<string> =>
    validateUrlValue(value, ['ws', 'wss', 'tcp', 'tls'], (text, { scheme, port, path }) => {
      if (scheme === 'ws' || scheme === 'wss') return { value: text };
      if (port === null) return { refusalReason: `${scheme}:// needs a port` };
      return path === '' || path === '/'
        ? { value: text.replace(/\/$/, '') }
        : { refusalReason: `${scheme}:// has no path` };
    });
  return scalarValueType(expected, judge, { quotableInMessages: true });
}

/** The type of a browser's origin; `*` stands for any. */
export function browserOrigin(): ValueType<string> {
  const judge = (value: Value): ScalarResult<string> => {
    if (value.kind === 'string' && value.text === '*') return { value: '*' };
    return validateUrlValue(value, ['http', 'https'], (text, { path }) => {
      if (path !== '' && path !== '/') return { refusalReason: 'an origin has no path' };
      const url = URL.parse(text);
      return url === null ? { refusalReason: 'the host cannot be read' } : { value: url.origin };
    });
  };
  return scalarValueType('an origin such as "https://chat.example.org", or "*"', judge, { quotableInMessages: true });
}

/** The type of a host to listen on. */
export function listenHost(): ValueType<string> {
  return hostValueType('an address or host name to listen on', { quotableInMessages: true });
}

/**
 * The type of a host to connect to. Messages do not quote the value, since people write whole URLs with passwords here.
 */
export function connectHostValueType(expected: string): ValueType<string> {
  return hostValueType(expected, { quotableInMessages: false });
}

function hostValueType(expected: string, options: { quotableInMessages: boolean }): ValueType<string> {
  const judge = (value: Value): ScalarResult<string> => {
    if (value.kind !== 'string') return {};
    const { text } = value;
    if (isHost(text)) return { value: text };
    if (options.quotableInMessages) return {};
    if (text.includes('://')) return { refusalReason: 'it is a whole address, and only its host belongs here' };
    return text.includes(':') ? { refusalReason: 'the port has a key of its own' } : {};
  };
  return scalarValueType(expected, judge, { quotableInMessages: options.quotableInMessages });
}

/** A server to connect to. `port` null: the text has no port. */
interface HostAndOptionalPort {
  readonly host: string;
  readonly port: number | null;
}

/**
 * The type of a database server: `name`, `name:port`, `[address]:port`, or the folder of a Unix socket. Messages do not
 * quote the value, since people write whole URLs with passwords here.
 */
export function databaseServer(): ValueType<HostAndOptionalPort> {
  const expected = 'a host name or an address, with ":port" if it has one of its own, or the folder of a Unix socket';
  const judge = (value: Value): ScalarResult<HostAndOptionalPort> => {
    if (value.kind !== 'string') return {};
    const { text } = value;
    if (text.startsWith('/')) return text.includes('\0') ? {} : { value: { host: text, port: null } };
    if (isHost(text)) return { value: { host: text, port: null } };
    if (text.includes('://')) return { refusalReason: 'it is a whole address, and only its host belongs here' };
    const [, bracketed, name, digits] = /^(?:\[([^\]]*)\]|([^:]*))(?::(.*))?$/s.exec(text) ?? [];
    const host = bracketed ?? name ?? '';
    if (!(bracketed === undefined ? isHost(host) : isIPv6(host))) return {};
    if (digits === undefined) return { value: { host, port: null } };
    const port = /^\d{1,5}$/.test(digits) ? Number(digits) : 0;
    return port >= 1 && port <= 65_535
      ? { value: { host, port } }
      : { refusalReason: 'the port is not from 1 to 65535' };
  };
  return scalarValueType(expected, judge);
}

/** True if a text is an IP address or a CIDR range. */
function isAddressOrCidr(text: string): boolean {
  const [address = '', prefix, rest] = text.split('/');
  if (rest !== undefined || address.includes('%') || isIP(address) === 0) return false;
  return prefix === undefined || (/^\d{1,3}$/.test(prefix) && Number(prefix) <= (isIPv4(address) ? 32 : 128));
}

const RANGE_KEYWORDS = ['loopback', 'private'] as const;

/** A hint for a misspelt keyword, such as "privat", which would otherwise count as a host name and have no effect. */
function rangeKeywordHint(text: string): string | null {
  const near = RANGE_KEYWORDS.find((word) => editDistance(word, text) <= 2);
  return near === undefined ? null : `did you mean "${near}"?`;
}

/**
 * The type of an entry of `delivery.allow`: a CIDR range, an address, `loopback`, `private`, a host name, or all names
 * below one.
 */
export function allowedDeliveryTarget(): ValueType<string> {
  const expected = 'a CIDR range, an address, "loopback", "private" or a host name such as "*.corp.example"';
  const judge = (value: Value): ScalarResult<string> => {
    if (value.kind !== 'string') return {};
    const entry = value.text.trim().toLowerCase();
    if (RANGE_KEYWORDS.some((word) => word === entry) || isAddressOrCidr(entry)) return { value: entry };
    const suggestion = rangeKeywordHint(entry);
    if (suggestion !== null) return { refusalReason: suggestion };
    return isHost(entry.replace(/^\*\./, '')) && isIP(entry.replace(/^\*\./, '')) === 0 ? { value: entry } : {};
  };
  return scalarValueType(expected, judge, { quotableInMessages: true });
}

/** The type of an entry of `http.trusted-proxies`: the proxies whose `X-Forwarded-For` the server trusts. */
export function trustedProxy(): ValueType<string> {
  const judge = (value: Value): ScalarResult<string> => {
    if (value.kind !== 'string') return {};
    const entry = value.text.trim().toLowerCase();
    return RANGE_KEYWORDS.some((word) => word === entry) || isAddressOrCidr(entry) ? { value: entry } : {};
  };
  return scalarValueType('a CIDR range, an address, "loopback" or "private"', judge, { quotableInMessages: true });
}
