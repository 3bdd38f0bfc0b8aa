import { isIP } from 'node:net';
import { domainToASCII } from 'node:url';
import ipaddr from 'ipaddr.js';
import { MachineNetwork } from './machine-network.ts';
import { OWN_RULE, type Address, type OwnOrNeighbourAddresses } from './own-addresses.ts';
import type { OwnPublicHosts } from './public-hosts.ts';

type CidrRange<A extends Address> = readonly [A, number];

/** An entry of `delivery.allow` that cannot be read; the message is a sentence for the administrator. */
export class InvalidAllowEntryError extends Error {
  override readonly name = 'InvalidAllowEntryError';
}

/** The ranges of the entries `loopback` and `private` of `delivery.allow`. */
const NAMED_RANGES: ReadonlyMap<string, readonly string[]> = new Map([
  ['loopback', ['127.0.0.0/8', '::1/128']],
  ['private', ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7']],
]);

/** ipaddr.js calls all of these "reserved"; the log names the reason for the administrator. */
const RULES_BY_CIDR: readonly (readonly [string, string])[] = [
  ['192.0.2.0/24', 'documentation'],
  ['198.51.100.0/24', 'documentation'],
  ['203.0.113.0/24', 'documentation'],
  ['2001:db8::/32', 'documentation'],
  ['3fff::/20', 'documentation'],
  ['198.18.0.0/15', 'benchmarking'],
  ['192.88.99.0/24', '6to4'],
];

/** Names for the ranges of ipaddr.js; a range that is not listed here is "special-purpose" and is refused as well. */
const RULE_OF_RANGE: ReadonlyMap<string, string> = new Map([
  ['unspecified', 'unspecified'],
  ['broadcast', 'broadcast'],
  ['multicast', 'multicast'],
  ['linkLocal', 'link-local'],
  ['loopback', 'loopback'],
  ['carrierGradeNat', 'carrier-grade NAT'],
  ['private', 'private'],
  ['uniqueLocal', 'private'],
  ['reserved', 'reserved'],
  ['deprecatedSiteLocal', 'site-local'],
  ['ipv4Mapped', 'IPv4-mapped IPv6'],
  ['rfc6145', 'IPv4-translated IPv6'],
  ['rfc6052', 'NAT64'],
  ['6to4', '6to4'],
  ['teredo', 'Teredo'],
  ['benchmarking', 'benchmarking'],
]);

const HOST_LABEL = '[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?';
const HOST_NAME = new RegExp(`^${HOST_LABEL}(?:\\.${HOST_LABEL})*$`);
/**
 * WHATWG URLs read a host whose last label is a number as an IPv4 address, so such an entry could never match a name.
 */
const ENDS_IN_NUMBER = /(?:^|\.)(?:\d+|0x[0-9a-f]*)$/;

/** Sources of public addresses that are still refused, because they lead to this server or to its neighbours. */
interface OwnOrNeighbourSources {
  /** Default: the machine's interfaces and on-link prefixes, read at run time. */
  readonly machine?: OwnOrNeighbourAddresses;
  /** The addresses to which `http.base-uri` and `public-endpoints` resolve. */
  readonly ownPublicHosts?: OwnPublicHosts;
}

/**
 * Decides which addresses outgoing requests may connect to (the contract's "Address policy"):
 * - public unicast addresses that are neither the server's own nor its neighbours',
 * - addresses that `delivery.allow` lists.
 *
 * An IPv4-mapped IPv6 address reaches an IPv4 host, so IPv4 entries decide about it. It must be listed even if the IPv4
 * address is a public one: no receiver needs that spelling, and attackers bypass filters with it. All other addresses
 * that carry an IPv4 address (`::a.b.c.d`, NAT64, 6to4, Teredo, ISATAP) need an IPv6 entry of their own.
 */
export class AddressPolicy {
  readonly #allowedIpv4Ranges: CidrRange<ipaddr.IPv4>[] = [];
  readonly #allowedIpv6Ranges: CidrRange<ipaddr.IPv6>[] = [];
  readonly #allowedHosts = new Set<string>();
  readonly #allowedSuffixes: string[] = [];
  readonly #machine: OwnOrNeighbourAddresses;
  readonly #ownPublicHosts: OwnPublicHosts | null;

  /**
   * @param allow entries of `delivery.allow`: `10.1.0.0/16`, `fd00::/8`, one address, `loopback`, `private`, a host
   *   name (`hooks.local`) or the names below one (`*.corp.example`, which does not match `corp.example` itself).
   * @throws InvalidAllowEntryError for an entry that is none of these.
   */
  constructor(
    allow: readonly string[],
    { machine = new MachineNetwork(), ownPublicHosts }: OwnOrNeighbourSources = {},
  ) {
    this.#machine = machine;
    this.#ownPublicHosts = ownPublicHosts ?? null;
    for (const entry of allow) this.#add(entry);
  }

  /**
   * Call this before `violatedRule` decides about a connection: it resolves once the server's own names were looked up.
   */
  async refreshPublicHostsIfDue(): Promise<void> {
    await this.#ownPublicHosts?.refreshIfDueAwaitFirst();
  }

  /**
   * Null when a connection to `address` (as a resolver or a URL gives it, including a zone id) is allowed for the host
   * name `host`. Else the short name of the rule that refuses it.
   */
  violatedRule(address: string, host: string): string | null {
    if (isIP(address) === 0) return 'not an address';
    const parsed = parseWithoutZone(address);
    const rule = refusingRuleOf(parsed) ?? this.#ownOrNeighbourRuleOf(parsed, host);
    if (rule === null || this.#isHostNameAllowListed(host) || this.#isAddressAllowListed(parsed)) return null;
    return rule;
  }

  #ownOrNeighbourRuleOf(address: Address, host: string): string | null {
    if (this.#ownPublicHosts?.includes(host) === true) return OWN_RULE;
    return this.#machine.refusingRuleOf(address) ?? this.#ownPublicHosts?.refusingRuleOf(address) ?? null;
  }

  /**
   * The check at registration, for the host of a URL. Null for an allowed literal address. Also null for a name that is
   * not the server's own or that `delivery.allow` lists: the look-up at each attempt decides about it. Else the rule
   * that refuses the host. Spellings such as `0x7f.1` are read as URLs do.
   */
  violatedRuleBeforeLookup(host: string): string | null {
    const literal = ipLiteralOf(host);
    if (literal !== null) return this.violatedRule(literal, host);
    const normalised = URL.parse(`http://${host}/`)?.hostname;
    if (normalised === undefined) return 'not a host';
    const spelled = ipLiteralOf(normalised);
    if (spelled !== null) return this.violatedRule(spelled, host);
    return this.#ownPublicHosts?.includes(normalised) === true && !this.#isHostNameAllowListed(host) ? OWN_RULE : null;
  }

  /**
   * Whether `delivery.allow` names the host of a URL, by its name or by an address that it spells. The administrator
   * then means this very host, and not just any public one.
   */
  isHostAllowListed(host: string): boolean {
    const literal = ipLiteralOf(host);
    if (literal !== null)
      return this.#isHostNameAllowListed(host) || this.#isAddressAllowListed(parseWithoutZone(literal));
    return this.#isHostNameAllowListed(host);
  }

  #add(entry: string): void {
    const text = entry.trim().toLowerCase();
    const named = NAMED_RANGES.get(text);
    const range = parseRange(text);
    if (named !== undefined) for (const cidr of named) this.#add(cidr);
    else if (range !== null) this.#allowRange(range);
    else this.#allowHost(text, entry);
  }

  /**
   * A range inside ::ffff:0:0/96 is stored as the IPv4 range that it means; a wider one (`::/0`) covers no mapped
   * address.
   */
  #allowRange([address, prefix]: CidrRange<Address>): void {
    if (address.kind() === 'ipv4') {
      this.#allowedIpv4Ranges.push([address as ipaddr.IPv4, prefix]);
      return;
    }
    const address6 = address as ipaddr.IPv6;
    if (prefix >= 96 && address6.isIPv4MappedAddress())
      this.#allowedIpv4Ranges.push([address6.toIPv4Address(), prefix - 96]);
    else this.#allowedIpv6Ranges.push([address6, prefix]);
  }

  #allowHost(text: string, entry: string): void {
    const isGlob = text.startsWith('*.');
    const host = withoutFinalDot(domainToASCII(isGlob ? text.slice(2) : text));
    if (!HOST_NAME.test(host) || host.length > 253 || ENDS_IN_NUMBER.test(host)) {
      throw new InvalidAllowEntryError(
        `"${entry}" is not a CIDR range, an address, "loopback", "private" or a host name such as "*.corp.example".`,
      );
    }
    if (isGlob) this.#allowedSuffixes.push(`.${host}`);
    else this.#allowedHosts.add(host);
  }

  #isHostNameAllowListed(host: string): boolean {
    if (this.#allowedHosts.size === 0 && this.#allowedSuffixes.length === 0) return false;
    const name = withoutFinalDot(host.toLowerCase());
    return this.#allowedHosts.has(name) || this.#allowedSuffixes.some((suffix) => name.endsWith(suffix));
  }

  #isAddressAllowListed(address: Address): boolean {
    if (address.kind() === 'ipv4') return this.#allowedIpv4Ranges.some((range) => matches(address, range));
    const address6 = address as ipaddr.IPv6;
    if (address6.isIPv4MappedAddress()) {
      const embedded = address6.toIPv4Address();
      return this.#allowedIpv4Ranges.some((range) => matches(embedded, range));
    }
    return this.#allowedIpv6Ranges.some((range) => matches(address, range));
  }
}

/**
 * Null for public unicast; else the name of the rule. Ranges that no list names are refused: the lists may be
 * incomplete.
 */
function refusingRuleOf(address: Address): string | null {
  for (const [cidr, rule] of RULES_BY_CIDR) if (matches(address, ipaddr.parseCIDR(cidr))) return rule;
  const range = address.range();
  if (range !== 'unicast') return RULE_OF_RANGE.get(range) ?? 'special-purpose';
  if (address.kind() === 'ipv4') return null;
  const { parts } = address as ipaddr.IPv6;
  // ipaddr.js (like request-filtering-agent) takes `::127.0.0.1` for unicast.
  if (parts.slice(0, 6).every((part) => part === 0)) return 'IPv4-compatible IPv6';
  // ISATAP (RFC 5214): a host with such an interface tunnels to the IPv4 address at the end, with any prefix.
  if (((parts[4] ?? 0) & 0xfdff) === 0 && parts[5] === 0x5efe) return 'ISATAP';
  // IANA has delegated no unicast outside 2000::/3.
  return ((parts[0] ?? 0) & 0xe000) === 0x2000 ? null : 'reserved';
}

function matches(address: Address, [range, prefix]: CidrRange<Address>): boolean {
  return address.kind() === range.kind() && address.match(range, prefix);
}

/**
 * `10.1.0.0/16`, `fd00::/8` or one address; null for anything else. Only full spellings: `10.1/16` is too easy to
 * misread.
 */
function parseRange(text: string): CidrRange<Address> | null {
  const [address = '', prefix, ...more] = text.split('/');
  const family = isIP(address);
  if (family === 0 || address.includes('%') || more.length > 0) return null;
  const bits = family === 4 ? 32 : 128;
  if (prefix === undefined) return [parseWithoutZone(address), bits];
  if (!/^\d{1,3}$/.test(prefix) || Number(prefix) > bits) return null;
  return [parseWithoutZone(address), Number(prefix)];
}

/**
 * Parses an address that `isIP` has accepted; the zone id does not matter to the rules. An IPv6 address passes through
 * a URL, which writes it in pure hexadecimal: ipaddr.js 2.5 takes `::127.0.0.1` for `::ffff:127.0.0.1`.
 */
function parseWithoutZone(address: string): Address {
  const [bare = ''] = address.split('%');
  return ipaddr.parse(isIP(bare) === 6 ? new URL(`http://[${bare}]`).hostname.slice(1, -1) : bare);
}

function ipLiteralOf(host: string): string | null {
  const bare = host.startsWith('[') && host.endsWith(']') ? host.slice(1, -1) : host;
  return isIP(bare) === 0 ? null : bare;
}

function withoutFinalDot(host: string): string {
  return host.endsWith('.') ? host.slice(0, -1) : host;
}
