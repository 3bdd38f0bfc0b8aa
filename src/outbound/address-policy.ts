import { isIP } from 'node:net';
import { domainToASCII } from 'node:url';
import ipaddr from 'ipaddr.js';
import { MachineNetwork } from './machine-network.ts';
import { OWN_RULE, type Address, type OwnOrNeighbourAddresses } from './own-addresses.ts';
import type { OwnPublicHosts } from './public-hosts.ts';

type CidrRange<A extends Address> = readonly [A, number];

/** Thrown for an invalid entry of `delivery.allow`. The message is a sentence for the administrator. */
export class InvalidAllowEntryError extends Error {
  override readonly name = 'InvalidAllowEntryError';
}

/** The address ranges that the entries `loopback` and `private` of `delivery.allow` stand for. */
const NAMED_RANGES: ReadonlyMap<string, readonly string[]> = new Map([
  ['loopback', ['127.0.0.0/8', '::1/128']],
  ['private', ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7']],
]);

/** Ranges that ipaddr.js calls "reserved", with a more exact reason, which the administrator finds in the log. */
const RULES_BY_CIDR: readonly (readonly [string, string])[] = [
  ['192.0.2.0/24', 'documentation'],
  ['198.51.100.0/24', 'documentation'],
  ['203.0.113.0/24', 'documentation'],
  ['2001:db8::/32', 'documentation'],
  ['3fff::/20', 'documentation'],
  ['198.18.0.0/15', 'benchmarking'],
  ['192.88.99.0/24', '6to4'],
];

/**
 * The name of the rule for each refused range of ipaddr.js. A range that is not listed here is refused as
 * "special-purpose".
 */
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
 * A host name whose last label is a number. `URL` reads such a host as an IPv4 address, so an entry with it could never
 * match a name.
 */
const ENDS_IN_NUMBER = /(?:^|\.)(?:\d+|0x[0-9a-f]*)$/;

/** Where the policy finds the public addresses that lead to this server or its neighbours, and so are refused. */
interface OwnOrNeighbourSources {
  /**
   * The addresses of this machine's interfaces, and its on-link IPv6 prefixes. By default they are read from the
   * operating system.
   */
  readonly machine?: OwnOrNeighbourAddresses;
  /** The addresses to which `http.base-uri` and `public-endpoints` resolve. */
  readonly ownPublicHosts?: OwnPublicHosts;
}

/**
 * Decides which addresses outgoing requests may connect to (docs/reverse-webhooks.md, "Where deliveries may go"):
 * - public unicast addresses that are neither the server's own nor its neighbours',
 * - addresses that `delivery.allow` lists.
 *
 * An IPv4-mapped IPv6 address reaches an IPv4 host, so the IPv4 entries of `delivery.allow` decide about it. It is
 * refused without an entry even if the IPv4 address is public: no receiver needs that spelling, and attackers bypass
 * filters with it. All other IPv6 addresses that contain an IPv4 address (`::a.b.c.d`, NAT64, 6to4, Teredo, ISATAP)
 * need an IPv6 entry.
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
    for (const entry of allow) this.#addAllowEntry(entry);
  }

  /**
   * Must be called before `violatedRule` decides about a connection. Resolves when the server's own host names have
   * been looked up at least once.
   */
  async refreshPublicHostsIfDue(): Promise<void> {
    await this.#ownPublicHosts?.refreshIfDueAwaitFirst();
  }

  /**
   * Returns the short name of the rule that refuses a connection to `address` for the host name `host`; null if it is
   * allowed. The address may have a zone id.
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
   * Checks the host of a URL when a hook is registered. Returns the rule that refuses the host; null for:
   * - an address that is allowed,
   * - a name, since the addresses of each attempt decide about it; except for the server's own names, which
   *   `delivery.allow` must list.
   *
   * Spellings of an address such as `0x7f.1` are read as `URL` reads them.
   */
  violatedRuleBeforeLookup(host: string): string | null {
    const literal = ipLiteralOf(host);
    if (literal !== null) return this.violatedRule(literal, host);
    const normalised = URL.parse(`http://${host}/`)?.hostname;
    if (normalised === undefined) return 'not a host';
    const normalisedLiteral = ipLiteralOf(normalised);
    if (normalisedLiteral !== null) return this.violatedRule(normalisedLiteral, host);
    return this.#ownPublicHosts?.includes(normalised) === true && !this.#isHostNameAllowListed(host) ? OWN_RULE : null;
  }

  /**
   * True if `delivery.allow` lists the host of a URL, by its name or by its address. Then the administrator allows
   * exactly this host, and not only as one of all public hosts.
   */
  isHostAllowListed(host: string): boolean {
    const literal = ipLiteralOf(host);
    if (literal !== null)
      return this.#isHostNameAllowListed(host) || this.#isAddressAllowListed(parseWithoutZone(literal));
    return this.#isHostNameAllowListed(host);
  }

  #addAllowEntry(entry: string): void {
    const text = entry.trim().toLowerCase();
    const named = NAMED_RANGES.get(text);
    const range = parseRange(text);
    if (named !== undefined) for (const cidr of named) this.#addAllowEntry(cidr);
    else if (range !== null) this.#allowRange(range);
    else this.#allowHost(text, entry);
  }

  /**
   * Adds a range of allowed addresses. A range of IPv4-mapped addresses (inside ::ffff:0:0/96) is stored as the IPv4
   * range. A wider one, such as `::/0`, allows no IPv4-mapped address.
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
 * Returns the name of the rule that refuses an address; null for a public unicast address. IPv6 ranges in no list are
 * refused too, since the lists may be incomplete.
 */
function refusingRuleOf(address: Address): string | null {
  for (const [cidr, rule] of RULES_BY_CIDR) if (matches(address, ipaddr.parseCIDR(cidr))) return rule;
  const range = address.range();
  if (range !== 'unicast') return RULE_OF_RANGE.get(range) ?? 'special-purpose';
  if (address.kind() === 'ipv4') return null;
  const { parts } = address as ipaddr.IPv6;
  // ipaddr.js (like request-filtering-agent) regards `::127.0.0.1` as unicast.
  if (parts.slice(0, 6).every((part) => part === 0)) return 'IPv4-compatible IPv6';
  // ISATAP (RFC 5214): a host with such an interface sends to the IPv4 address in the last 32 bits, whatever the
  // prefix.
  if (((parts[4] ?? 0) & 0xfdff) === 0 && parts[5] === 0x5efe) return 'ISATAP';
  // IANA has delegated no IPv6 unicast addresses outside 2000::/3.
  return ((parts[0] ?? 0) & 0xe000) === 0x2000 ? null : 'reserved';
}

function matches(address: Address, [range, prefix]: CidrRange<Address>): boolean {
  return address.kind() === range.kind() && address.match(range, prefix);
}

/**
 * Parses a range such as `10.1.0.0/16` or `fd00::/8`, or a single address; null for anything else. Abbreviations such
 * as `10.1/16` are refused, since they are easy to misread.
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
 * Parses an address that `isIP` has accepted, without its zone id, which does not matter to the rules. `URL` first
 * writes an IPv6 address in pure hexadecimal, since ipaddr.js 2.5 mistakes `::127.0.0.1` for `::ffff:127.0.0.1`.
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
