import type { IncomingMessage } from 'node:http';
import ipaddr from 'ipaddr.js';

type Range = readonly [ipaddr.IPv4 | ipaddr.IPv6, number];

/** Whose `X-Forwarded-For` is believed; the same rule as the HTTP interface's. */
export class TrustedProxies {
  readonly #ranges: readonly Range[];

  /** Addresses and CIDR ranges. */
  constructor(proxies: readonly string[]) {
    this.#ranges = proxies.map((proxy) => {
      if (proxy.includes('/')) return ipaddr.parseCIDR(proxy);
      const address = ipaddr.process(proxy);
      return [address, address.kind() === 'ipv4' ? 32 : 128];
    });
  }

  has(address: string): boolean {
    if (!ipaddr.isValid(address)) return false;
    const parsed = ipaddr.process(address);
    return this.#ranges.some(([range, bits]) => range.kind() === parsed.kind() && parsed.match([range, bits] as never));
  }

  /**
   * Where a request comes from: the address nearest to us that is no trusted proxy. What stands before it in the header
   * was written by whoever is there.
   */
  clientAddress(request: IncomingMessage): string {
    const header = request.headers['x-forwarded-for'];
    const forwarded = (Array.isArray(header) ? header.join(',') : (header ?? '')).split(',').map((each) => each.trim());
    let source = plain(request.socket.remoteAddress ?? '');
    while (this.has(source)) {
      const next = forwarded.pop();
      if (next === undefined || !ipaddr.isValid(next)) break;
      source = plain(next);
    }
    return source;
  }
}

/** One spelling for each address. */
export function plain(address: string): string {
  return ipaddr.isValid(address) ? ipaddr.process(address).toString() : address;
}
