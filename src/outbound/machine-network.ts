import { closeSync, openSync, readSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import ipaddr from 'ipaddr.js';
import { OWN_RULE, type Address, type OwnOrNeighbourAddresses } from './own-addresses.ts';

/** What the operating system knows about the network. `routesText` has the format of /proc/net/ipv6_route. */
export interface MachineNetworkFacts {
  readonly interfaces: readonly { readonly address: string; readonly cidr: string | null }[];
  readonly routesText: string;
}

/** `read`: reads the facts from the operating system. `now`: a monotonic clock in milliseconds. Tests replace both. */
interface MachineNetworkOptions {
  readonly read?: () => MachineNetworkFacts;
  readonly now?: () => number;
}

/**
 * The facts are read again when they are this old, so the policy knows a new address of this machine after this time.
 * One read takes about 0.1 ms.
 */
const REFRESH_MS = 10_000;
/**
 * The most bytes of the routes that are read: about 7,000 routes. A router with more is still protected by the prefixes
 * of its interfaces.
 */
const MAX_ROUTES_FILE_BYTES = 1024 * 1024;
/**
 * The shortest prefix of a route that counts as on-link: registries assign at most a /32 to one network. A wider route
 * without a gateway leads into a tunnel, and would make the whole internet a neighbour.
 */
const WIDEST_LINK_PREFIX = 32;
const ROUTES_FILE = '/proc/net/ipv6_route';
const NO_GATEWAY = '0'.repeat(32);
/** The kernel's flags RTF_GATEWAY and RTF_REJECT: the route leads to a gateway, or rejects packets. */
const NOT_ON_LINK_FLAGS = 0x2 | 0x200;

type Ipv6Prefix = readonly [ipaddr.IPv6, number];

/**
 * Refuses the addresses of this machine's interfaces, and those in IPv6 prefixes that it reaches without a router.
 * Services that are closed to the internet often trust these addresses. The facts are read again when they are 10 s
 * old.
 */
export class MachineNetwork implements OwnOrNeighbourAddresses {
  readonly #read: () => MachineNetworkFacts;
  readonly #now: () => number;
  #ownAddresses: ReadonlySet<string> = new Set();
  #linkPrefixes: readonly Ipv6Prefix[] = [];
  #lastReadAtMs = Number.NEGATIVE_INFINITY;

  constructor({ read = readFacts, now = () => performance.now() }: MachineNetworkOptions = {}) {
    this.#read = read;
    this.#now = now;
  }

  refusingRuleOf(address: Address): string | null {
    this.#refresh();
    if (this.#ownAddresses.has(address.toNormalizedString())) return OWN_RULE;
    if (address.kind() !== 'ipv6') return null;
    return this.#linkPrefixes.some((link) => (address as ipaddr.IPv6).match(...link)) ? 'on-link IPv6' : null;
  }

  #refresh(): void {
    if (this.#now() - this.#lastReadAtMs < REFRESH_MS) return;
    const { interfaces, routesText: routes } = this.#read();
    this.#ownAddresses = new Set(interfaces.map(({ address }) => parse(address).toNormalizedString()));
    this.#linkPrefixes = [...interfaces.flatMap(({ cidr }) => prefixOf(cidr)), ...linkPrefixesIn(routes)].filter(
      ([, length]) => length >= WIDEST_LINK_PREFIX,
    );
    this.#lastReadAtMs = this.#now();
  }
}

function readFacts(): MachineNetworkFacts {
  const interfaces = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  return { interfaces, routesText: readIpv6Routes() };
}

/** Reads the kernel's IPv6 routes; empty without IPv6, since the kernel then has no such file. */
function readIpv6Routes(): string {
  let fileDescriptor: number;
  try {
    fileDescriptor = openSync(ROUTES_FILE, 'r');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return '';
    throw error;
  }
  try {
    const buffer = Buffer.allocUnsafe(MAX_ROUTES_FILE_BYTES);
    let length = 0;
    for (let read = -1; read !== 0 && length < buffer.length; length += read) {
      read = readSync(fileDescriptor, buffer, length, buffer.length - length, null);
    }
    return buffer.toString('latin1', 0, length);
  } finally {
    closeSync(fileDescriptor);
  }
}

function prefixOf(cidr: string | null): Ipv6Prefix[] {
  if (cidr === null || !cidr.includes(':')) return [];
  const [address = '', length] = cidr.split('/');
  return [[parse(address) as ipaddr.IPv6, Number(length)]];
}

/**
 * Reads the on-link prefixes from the routes. Columns: destination, length, source, length, next hop, metric,
 * references, uses, flags, interface.
 */
function linkPrefixesIn(routes: string): Ipv6Prefix[] {
  return routes.split('\n').flatMap((line): Ipv6Prefix[] => {
    const [destination, length, , , nextHop, , , , flags] = line.trim().split(/\s+/);
    if (destination?.length !== 32 || nextHop !== NO_GATEWAY || (parseInt(flags ?? '', 16) & NOT_ON_LINK_FLAGS) !== 0) {
      return [];
    }
    const text = destination.match(/.{4}/g)!.join(':');
    return [[ipaddr.IPv6.parse(text), parseInt(length ?? '', 16)]];
  });
}

function parse(address: string): Address {
  return ipaddr.parse(address.split('%')[0]!);
}
