import type { Config } from '../config/config.ts';
import { AddressPolicy } from './address-policy.ts';
import type { DnsResolver } from './dns-resolver.ts';
import { OwnPublicHosts, type OwnPublicHostsOptions } from './public-hosts.ts';

/**
 * Creates the address policy from the configuration. It applies to deliveries, pings and web push, and `klatch doctor`
 * checks hooks with it.
 */
export function createAddressPolicy(
  { delivery, http, publicEndpoints }: Config,
  lookup: DnsResolver,
  onFirstFailure: OwnPublicHostsOptions['onFirstFailure'],
): AddressPolicy {
  const ownPublicHosts = new OwnPublicHosts({ baseUri: http.baseUri, publicEndpoints }, { lookup, onFirstFailure });
  return new AddressPolicy(delivery.allow, { ownPublicHosts });
}
