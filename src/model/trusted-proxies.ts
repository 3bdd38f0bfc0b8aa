import type { IncomingMessage } from 'node:http';
import ipaddr from 'ipaddr.js';
import { BoundedCache } from './bounded-cache.ts';
import { sourceKey, type SourceKey } from './source-key.ts';

type CidrRange = readonly [ipaddr.IPv4 | ipaddr.IPv6, number];

/**
 * The maximum number of addresses whose source keys are cached: to parse an address takes longer than to parse a small
 * post.
 */
const MAX_CACHED_ADDRESSES = 10_000;

/** The proxies whose `X-Forwarded-For` is trusted (`http.trusted-proxies`). Nothing else reads that header. */
export class TrustedProxies {
  readonly #ranges: readonly CidrRange[];
  readonly #sourceKeyByAddress = new BoundedCache<string, SourceKey>(MAX_CACHED_ADDRESSES);

  /** `proxies` holds addresses and CIDR ranges. */
  constructor(proxies: readonly string[]) {
    this.#ranges = proxies.map((proxy) => {
      if (proxy.includes('/')) return ipaddr.parseCIDR(proxy);
      const address = ipaddr.process(proxy);
      return [address, address.kind() === 'ipv4' ? 32 : 128];
    });
  }

  isTrustedProxy(address: string): boolean {
    if (!ipaddr.isValid(address)) return false;
    const parsed = ipaddr.process(address);
    return this.#ranges.some(([range, bits]) => range.kind() === parsed.kind() && parsed.match([range, bits] as never));
  }

  /** The source key of the client that sent a request, also if the request came through trusted proxies. */
  sourceKeyOf(request: IncomingMessage): SourceKey {
    const address = this.clientAddress(request);
    let source = this.#sourceKeyByAddress.get(address);
    if (source === undefined) {
      source = sourceKey(address);
      this.#sourceKeyByAddress.set(address, source);
    }
    return source;
  }

  /**
   * The address of the client: the nearest one that is no trusted proxy. The client at that address may have made up
   * the addresses before it in the header.
   */
  clientAddress(request: IncomingMessage): string {
    let address = request.socket.remoteAddress ?? '';
    const header = request.headers['x-forwarded-for'];
    if (header === undefined) return address;
    const forwarded = (Array.isArray(header) ? header.join(',') : header).split(',');
    while (this.isTrustedProxy(address)) {
      const next = forwarded.pop()?.trim();
      if (next === undefined || !ipaddr.isValid(next)) break;
      address = next;
    }
    return address;
  }
}
