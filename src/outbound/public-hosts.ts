import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import type { DnsResolver } from './dns-resolver.ts';
import { OWN_RULE, type Address, type OwnOrNeighbourAddresses } from './own-addresses.ts';

/** The public URIs of this installation: the settings `http.base-uri` and `public-endpoints`. */
interface PublicUris {
  readonly baseUri: string;
  readonly publicEndpoints: readonly string[];
}

export interface OwnPublicHostsOptions {
  readonly lookup: Pick<DnsResolver, 'lookup'>;
  /**
   * Called for the first failed look-up of a host, and for the first one after each successful look-up. The addresses
   * of the last successful look-up are used further.
   */
  readonly onFirstFailure?: ((host: string, error: Error) => void) | undefined;
  /** A monotonic clock in milliseconds. */
  readonly now?: () => number;
}

/** The host names are looked up again, in the background, when the last look-up is this old. */
const REFRESH_MS = 60_000;
/** After a round of look-ups in which one failed, the next round begins after this time. */
const FAILURE_REFRESH_MS = 10_000;

/**
 * Refuses the addresses to which `http.base-uri` and `public-endpoints` resolve. Behind a proxy or NAT no interface of
 * this machine has them, but they lead to it nevertheless.
 */
export class OwnPublicHosts implements OwnOrNeighbourAddresses {
  readonly #options: OwnPublicHostsOptions;
  /**
   * The hosts of the URIs (names or addresses), as `URL` writes them. There are at most 33: one base-uri and 32
   * endpoints.
   */
  readonly #hosts: ReadonlySet<string>;
  readonly #addressesByHost = new Map<string, readonly string[]>();
  readonly #failingHosts = new Set<string>();
  #refreshing: Promise<void> | null = null;
  #nextRefreshAtMs = Number.NEGATIVE_INFINITY;

  constructor({ baseUri, publicEndpoints }: PublicUris, options: OwnPublicHostsOptions) {
    this.#options = options;
    this.#hosts = new Set([baseUri, ...publicEndpoints].map(hostOf));
    for (const host of this.#hosts) if (isIP(host) !== 0) this.#addressesByHost.set(host, [normalize(host)]);
  }

  refusingRuleOf(address: Address): string | null {
    const text = address.toNormalizedString();
    for (const addresses of this.#addressesByHost.values()) if (addresses.includes(text)) return OWN_RULE;
    return null;
  }

  /** True if one of the URIs has this host: then the name is the server's own, whatever its addresses. */
  includes(host: string): boolean {
    return this.#hosts.has(host.toLowerCase().replace(/\.$/, ''));
  }

  /**
   * Resolves when every name was looked up once. Later calls resolve at once, and start a new round of look-ups if the
   * last one is a minute old. They do not wait for the round, since a silent name server must not delay connections.
   */
  async refreshIfDueAwaitFirst(): Promise<void> {
    const now = this.#options.now ?? (() => performance.now());
    const isFirst = this.#nextRefreshAtMs === Number.NEGATIVE_INFINITY;
    if (this.#refreshing === null && now() >= this.#nextRefreshAtMs) {
      const names = [...this.#hosts].filter((host) => isIP(host) === 0);
      this.#refreshing = Promise.all(names.map((host) => this.#resolve(host))).then(() => {
        this.#nextRefreshAtMs = now() + (this.#failingHosts.size > 0 ? FAILURE_REFRESH_MS : REFRESH_MS);
        this.#refreshing = null;
      });
    }
    if (isFirst) await this.#refreshing;
  }

  async #resolve(host: string): Promise<void> {
    try {
      const found = await this.#options.lookup.lookup(host);
      this.#addressesByHost.set(
        host,
        found.map(({ address }) => normalize(address)),
      );
      this.#failingHosts.delete(host);
    } catch (error) {
      if (!this.#failingHosts.has(host)) this.#options.onFirstFailure?.(host, error as Error);
      this.#failingHosts.add(host);
    }
  }
}

/** The host of a URI, normalised as that of an `http:` URL. `URL` does not normalise the host of a `tcp:` URI. */
function hostOf(uri: string): string {
  const { hostname } = new URL(uri.replace(/^[a-z]+:/i, 'http:'));
  return hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
}

function normalize(address: string): string {
  return ipaddr.parse(address.split('%')[0]!).toNormalizedString();
}
