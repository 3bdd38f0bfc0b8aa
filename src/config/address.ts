import { isIP, isIPv4, isIPv6 } from 'node:net';
import { domainToASCII } from 'node:url';
import type { Value } from '../../packages/hocon/src/index.ts';
import { editDistance } from './edit-distance.ts';
import { scalar } from './value-types.ts';
import type { ValueType, ScalarResult } from './value-types.ts';

const DNS_LABEL = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/;
/** Resolvers and URLs read a name whose last label is a number as an IPv4 address in an odd spelling. */
const NUMERIC_LABEL = /^(?:\d+|0x[0-9a-f]*)$/;

/** Whether a text is an IP address or a name that can be looked up, international names included. */
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

/** The parts of `scheme://host:port/path` without the host. */
interface UrlPartsExceptHost {
  readonly scheme: string;
  readonly port: string | null;
  readonly path: string;
}

const URL_PATTERN = /^([a-z][a-z0-9+.-]*):\/\/(\[[^\]]*\]|[^:/?#@[\]\\]*)(?::(\d*))?(\/[^?#\\]*)?$/i;

/**
 * Splits an address into its parts; or returns what is wrong with it. Stricter than URL parsers, which silently repair
 * many mistakes.
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

/** Checks that a value is an address with one of these schemes; `finish` then turns it into the result. */
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
 * An absolute http(s) address without query and fragment; the result is normalised, without a trailing slash. Only
 * public addresses are `quotableInMessages`: others may contain a token in their path.
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
  return scalar(expected, judge, { quotableInMessages });
}

/** An address that clients connect to: WebSocket, or JSON lines over TCP, which has no default port and no path. */
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
  return scalar(expected, judge, { quotableInMessages: true });
}

/** A browser origin, or `*` for any. */
export function browserOrigin(): ValueType<string> {
  const judge = (value: Value): ScalarResult<string> => {
    if (value.kind === 'string' && value.text === '*') return { value: '*' };
    return validateUrlValue(value, ['http', 'https'], (text, { path }) => {
      if (path !== '' && path !== '/') return { refusalReason: 'an origin has no path' };
      const url = URL.parse(text);
      return url === null ? { refusalReason: 'the host cannot be read' } : { value: url.origin };
    });
  };
  return scalar('an origin such as "https://chat.example.org", or "*"', judge, { quotableInMessages: true });
}

/** A host to listen on. */
export function listenHost(): ValueType<string> {
  return hostValueType('an address or host name to listen on', { quotableInMessages: true });
}

/** A host to connect to. It is not quotable in messages: people write whole addresses with passwords here. */
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
  return scalar(expected, judge, { quotableInMessages: options.quotableInMessages });
}

/** A server to connect to, with its port if the text names one. */
interface HostAndOptionalPort {
  readonly host: string;
  readonly port: number | null;
}

/**
 * `name`, `name:port`, `[address]:port`, or the folder of a Unix socket. Not quotable in messages: people write whole
 * addresses with passwords here.
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
  return scalar(expected, judge);
}

/** Whether a text is one address or a CIDR range. */
function isAddressOrCidr(text: string): boolean {
  const [address = '', prefix, rest] = text.split('/');
  if (rest !== undefined || address.includes('%') || isIP(address) === 0) return false;
  return prefix === undefined || (/^\d{1,3}$/.test(prefix) && Number(prefix) <= (isIPv4(address) ? 32 : 128));
}

const RANGE_KEYWORDS = ['loopback', 'private'] as const;

/** A hint for a misspelt keyword, which would otherwise count as a host name and have no effect. */
function rangeKeywordHint(text: string): string | null {
  const near = RANGE_KEYWORDS.find((word) => editDistance(word, text) <= 2);
  return near === undefined ? null : `did you mean "${near}"?`;
}

/**
 * A target that the address policy can allow: a range, an address, `loopback` or `private`, a host name, or all names
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
  return scalar(expected, judge, { quotableInMessages: true });
}

/** A proxy whose `X-Forwarded-For` the server trusts. */
export function trustedProxy(): ValueType<string> {
  const judge = (value: Value): ScalarResult<string> => {
    if (value.kind !== 'string') return {};
    const entry = value.text.trim().toLowerCase();
    return RANGE_KEYWORDS.some((word) => word === entry) || isAddressOrCidr(entry) ? { value: entry } : {};
  };
  return scalar('a CIDR range, an address, "loopback" or "private"', judge, { quotableInMessages: true });
}
