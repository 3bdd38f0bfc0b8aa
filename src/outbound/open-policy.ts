import type { Config } from '../config/config.ts';
import { AddressPolicy } from './address-policy.ts';
import type { NameLookup } from './name-lookup.ts';
import { PublicNames, type PublicNamesOptions } from './public-names.ts';

/** The address policy of a configuration. Deliveries, pings, push endpoints and `klatch doctor` all use this one. */
export function openPolicy(
  { delivery, http, publicEndpoints }: Config,
  lookup: NameLookup,
  onFailure: PublicNamesOptions['onFailure'],
): AddressPolicy {
  const publicNames = new PublicNames({ baseUri: http.baseUri, publicEndpoints }, { lookup, onFailure });
  return new AddressPolicy(delivery.allow, { publicNames });
}
