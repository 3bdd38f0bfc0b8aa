import { isIP } from 'node:net';
import type { Config } from '../config/config.ts';
import type { AddressPolicy } from '../outbound/address-policy.ts';
import { DnsResolver, DnsLookupError } from '../outbound/dns-resolver.ts';
import { createAddressPolicy } from '../outbound/create-address-policy.ts';
import type { HookHost } from '../storage/hooks/hook-report.ts';
import { countWithNoun, ok, warning, type CheckResult } from './finding.ts';

/** The maximum number of hosts that are checked; those with the most hooks come first. */
export const MAX_CHECKED_HOSTS = 200;
/** The maximum number of findings of one kind that are shown one by one; of the others, only the number is shown. */
const MAX_SHOWN_HOSTS_PER_KIND = 5;
const LOOKUP_TIMEOUT_MS = 3_000;

interface CheckedHost {
  readonly host: HookHost;
  /** Null: the server may connect to the host. */
  readonly problem: { readonly kind: 'refused' | 'unknown'; readonly reason: string } | null;
}

/** Checks the hosts of hooks against the address policy, by the addresses that their names resolve to now. */
export async function checkHookAddresses(hosts: readonly HookHost[], config: Config): Promise<CheckResult[]> {
  const { delivery } = config;
  const lookup = new DnsResolver({
    timeoutMs: Math.min(LOOKUP_TIMEOUT_MS, delivery.dnsTimeoutMs),
    successCacheMs: 0,
    failureCacheMs: 0,
    maxConcurrentLookups: delivery.dnsConcurrency,
  });
  // Failures are not logged: the check in base-uri.ts reports a base-uri that cannot be resolved.
  const policy = createAddressPolicy(config, lookup, undefined);
  await policy.refreshPublicHostsIfDue();
  const hostsToCheck = hosts.slice(0, MAX_CHECKED_HOSTS);
  const checkedHosts = await Promise.all(hostsToCheck.map(async (host) => checkHost(host, policy, lookup)));
  const warnings = [...hostWarnings(checkedHosts, 'refused'), ...hostWarnings(checkedHosts, 'unknown')];
  if (warnings.length > 0) return warnings;
  if (hostsToCheck.length === 0) return [ok('there are no hooks')];
  const what = hostsToCheck.length === 1 ? 'the host of the hooks' : `all ${hostsToCheck.length} hosts of hooks`;
  return [ok(`delivery.allow lets ${what} through`)];
}

async function checkHost(host: HookHost, policy: AddressPolicy, lookup: DnsResolver): Promise<CheckedHost> {
  const name = hostOf(host.authority);
  let addresses = [name];
  try {
    if (isIP(name) === 0) addresses = (await lookup.lookup(name)).map(({ address }) => address);
  } catch (error) {
    if (!(error instanceof DnsLookupError)) throw error;
    return { host, problem: { kind: 'unknown', reason: error.code } };
  }
  // One allowed address suffices, as it does when a delivery connects.
  const rules = addresses.map((address) => policy.violatedRule(address, name));
  if (rules.includes(null)) return { host, problem: null };
  const [address] = addresses;
  const reason = address === name ? `${rules[0]}` : `${address} is ${rules[0]}`;
  return { host, problem: { kind: 'refused', reason } };
}

function hostWarnings(checkedHosts: readonly CheckedHost[], kind: 'refused' | 'unknown'): CheckResult[] {
  const affectedHosts = checkedHosts.filter(({ problem }) => problem?.kind === kind);
  const verdicts = affectedHosts.slice(0, MAX_SHOWN_HOSTS_PER_KIND).map(({ host, problem }) => {
    const name = hostOf(host.authority);
    const who = `hook${host.hooks === 1 ? '' : 's'} ${host.ids.join(', ')}${host.hooks > host.ids.length ? ' …' : ''}`;
    if (kind === 'refused') {
      const todo = `If Klatch may reach it, add "${name}" or its range to delivery.allow and restart the server.`;
      return warning(`the address policy refuses ${name} (${problem!.reason}): ${who}`, todo);
    }
    const todo =
      'Look at the name servers of this machine; if the receiver is gone for good, its group removes the hook by DELETE.';
    return warning(`the name ${name} cannot be resolved (${problem!.reason}): ${who}`, todo);
  });
  const notShownCount = affectedHosts.length - verdicts.length;
  if (notShownCount > 0)
    verdicts.push(warning(`${countWithNoun(notShownCount, 'more host')} likewise`, 'Begin with those that are shown.'));
  return verdicts;
}

/** The host in `host:port`; an IPv6 address without its brackets. */
function hostOf(authority: string): string {
  return new URL(`http://${authority}/`).hostname.replace(/^\[|\]$/g, '');
}
