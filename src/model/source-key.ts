import ipaddr from 'ipaddr.js';

declare const brand: unique symbol;

/**
 * The key that stands for all callers of one network. Rate limiters and counters by source take this type alone. So no
 * counter can use a whole IPv6 address by mistake, of which one customer has 2^64.
 */
export type SourceKey = string & { readonly [brand]: 'SourceKey' };

const IPV6_PARTS_OF_64 = 4;
const IPV6_PARTS_OF_48 = 3;

/**
 * The key of an address: an IPv4 address (IPv4-mapped and NAT64 ones likewise), or the /64 network of an IPv6 address.
 */
export function sourceKey(address: string): SourceKey {
  if (!ipaddr.isValid(address)) return address as SourceKey;
  const parsed = ipaddr.process(address);
  if (!(parsed instanceof ipaddr.IPv6)) return parsed.toString() as SourceKey;
  // A NAT64 gateway shows all IPv4 clients in one /64, with the IPv4 address in the last 32 bits.
  if (parsed.range() === 'rfc6052') {
    return ipaddr.fromByteArray(parsed.toByteArray().slice(12)).toString() as SourceKey;
  }
  return ipv6NetworkKey(parsed.parts, IPV6_PARTS_OF_64);
}

/**
 * The key of the /48 network around an IPv6 source: providers assign networks of this size to a site. An IPv4 source
 * stays as it is.
 */
export function siteNetworkKey(source: SourceKey): SourceKey {
  const [address, bits] = source.split('/');
  return bits === '64' ? ipv6NetworkKey(ipaddr.IPv6.parse(address!).parts, IPV6_PARTS_OF_48) : source;
}

function ipv6NetworkKey(parts: readonly number[], count: number): SourceKey {
  const prefix = parts.slice(0, count).map((part) => part.toString(16));
  return `${prefix.join(':')}::/${count * 16}` as SourceKey;
}
