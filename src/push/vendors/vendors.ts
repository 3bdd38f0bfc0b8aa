import type { Config } from '../../config/config.ts';
import type { Log } from '../../log.ts';
import type { AddressPolicy } from '../../outbound/address-policy.ts';
import type { DnsResolver } from '../../outbound/dns-resolver.ts';
import { AppleVendor } from './apple.ts';
import { GoogleVendor } from './google.ts';
import type { PushVendor, PushVendors } from './vendor.ts';
import { WebVendor } from './web.ts';

interface VendorDeps {
  /**
   * The policy for the addresses that clients choose (web push). It does not apply to those in the configuration, which
   * the administrator chose.
   */
  readonly policy: AddressPolicy;
  readonly lookup: DnsResolver;
  readonly userAgent: string;
  /** Logs the vendors that cannot send; null: the caller reports them. */
  readonly log: Log | null;
}

/**
 * Creates the vendors that the configuration has keys for. Each connects only when it has something to send. A vendor
 * whose keys cannot be read is included, with its `problem`: the files may have changed since the configuration was
 * checked.
 */
export function createVendors(config: Config, { policy, lookup, userAgent, log }: VendorDeps): PushVendors {
  const { timeoutMs, maxInFlightPerVendor: inFlight } = config.push;
  const options = { timeoutMs, maxInFlight: inFlight, userAgent };
  const vendors: PushVendor[] = [];
  if (config.googlePush.keys.length > 0) vendors.push(new GoogleVendor(config.googlePush, options));
  if (config.applePush.keys.length > 0) vendors.push(new AppleVendor(config.applePush, options));
  if (config.webPush !== null) vendors.push(new WebVendor(config.webPush, options, { policy, lookup }));
  for (const { kind, problem } of vendors) {
    if (problem !== null) log?.error('nothing can be pushed by a vendor', { kind, problem });
  }
  return new Map(vendors.map((vendor) => [vendor.kind, vendor]));
}
