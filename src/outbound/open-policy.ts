import type { Config } from '../config/config.ts';
import type { Log } from '../log.ts';
import { AddressPolicy } from './address-policy.ts';
import type { NameLookup } from './name-lookup.ts';
import { PublicNames } from './public-names.ts';

/** The address policy of a configuration. Deliveries, pings, push endpoints and `klatch doctor` all use this one. */
export function openPolicy({ delivery, http, publicEndpoints }: Config, lookup: NameLookup, log: Log): AddressPolicy {
  const publicNames = new PublicNames(
    { baseUri: http.baseUri, publicEndpoints },
    { lookup, onFailure: (host, error) => log.warn('own host name not resolved', { host, error }) },
  );
  return new AddressPolicy(delivery.allow, { publicNames });
}
