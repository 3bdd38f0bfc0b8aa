import { isIP } from 'node:net';
import type { Config } from '../config/config.ts';
import { AddressPolicy } from '../outbound/address-policy.ts';
import { warning, type CheckResult } from './finding.ts';

/** The address where cloud providers give a machine its credentials. */
const METADATA_ADDRESS = '169.254.169.254';
/**
 * Addresses of several special IPv4 ranges. A policy that allows all of them, such as `0.0.0.0/0`, probably has no
 * bound for IPv4.
 */
const SPECIAL_RANGE_SAMPLES = ['127.0.0.1', '10.0.0.1', '100.64.0.1', METADATA_ADDRESS, '240.0.0.1'];
/**
 * A longer stop time-out gets a warning, which assumes a service manager that kills a stopping server after 30 s. The
 * stop also has steps that the time-out does not bound.
 */
const STOP_TIMEOUT_WARNING_MS = 28_000;

/** Warns of values that the server accepts, but that are probably a mistake or a security risk. */
export function findRiskySettings(config: Config): CheckResult[] {
  return [
    ...findAllOrMetadataAllowed(config),
    ...findUnencryptedLinks(config),
    ...findUnboundedProxyTrust(config),
    ...findDoubtfulTimeouts(config),
  ];
}

/**
 * Warns of an address policy that allows all samples of special ranges, or the metadata address. Anyone with an
 * integration token chooses where the server connects to.
 */
function findAllOrMetadataAllowed({ delivery }: Config): CheckResult[] {
  const policy = new AddressPolicy(delivery.allow);
  const allows = (address: string): boolean => policy.violatedRule(address, '') === null;
  const todo = 'List only the ranges and names of your receivers in delivery.allow.';
  if (SPECIAL_RANGE_SAMPLES.every(allows)) {
    const kinds = 'loopback, private, link-local and other special addresses';
    return [warning(`delivery.allow lets ${kinds} through`, todo)];
  }
  if (!allows(METADATA_ADDRESS)) return [];
  const found = `delivery.allow lets ${METADATA_ADDRESS} through, where clouds tell a machine its credentials`;
  return [warning(found, todo)];
}

/**
 * Warns of connections without TLS: webhook URLs contain tokens, and the connection to the database carries its
 * password.
 */
function findUnencryptedLinks({ http, postgresql }: Config): CheckResult[] {
  const found: CheckResult[] = [];
  const base = new URL(http.baseUri);
  if (base.protocol === 'http:' && !isLoopback(base.hostname)) {
    const todo = 'Put a proxy that ends TLS before Klatch and set http.base-uri to its https:// address.';
    found.push(warning('http.base-uri is http://, so that tokens cross the network in clear text', todo));
  }
  if (base.protocol === 'https:' && !isLoopback(http.interface)) {
    const todo = 'Listen on 127.0.0.1, or let a firewall close the port to all but the proxy.';
    const listenAddress = `${http.interface}:${http.port}`;
    found.push(
      warning(`Klatch listens on ${listenAddress} without TLS, where others can reach it past the proxy`, todo),
    );
  }
  const hosts = [postgresql, ...postgresql.otherHosts].map(({ host }) => host);
  const remoteHosts = postgresql.embedded ? [] : hosts.filter((host) => !host.startsWith('/') && !isLoopback(host));
  const databaseText = `the database at ${remoteHosts.join(' and ')}`;
  if (remoteHosts.length > 0 && postgresql.tls === null) {
    const todo = 'Set services.postgresql.tls = verify-full, or lead the connection through a tunnel.';
    found.push(
      warning(`the connection to ${databaseText} is not encrypted: messages cross the network in clear text`, todo),
    );
  } else if (remoteHosts.length > 0 && postgresql.tls?.mode === 'require') {
    const todo = 'Set services.postgresql.tls = verify-full, and ca-file where the authority is your own.';
    found.push(warning(`whoever answers for ${databaseText} is believed: its certificate is not looked at`, todo));
  }
  return found;
}

function findUnboundedProxyTrust({ http }: Config): CheckResult[] {
  if (!http.trustedProxies.some((entry) => entry.endsWith('/0'))) return [];
  const found = 'http.trusted-proxies believes everybody: who guesses tokens can name another address with each guess';
  return [warning(found, 'List the addresses of your proxies only.')];
}

function findDoubtfulTimeouts({ http, postgresql }: Config): CheckResult[] {
  const found: CheckResult[] = [];
  if (http.stopDrainTimeoutMs > STOP_TIMEOUT_WARNING_MS) {
    const todo = `Set http.stop-timeout to ${STOP_TIMEOUT_WARNING_MS / 1_000}s or less, or raise the service control's own time.`;
    found.push(warning('http.stop-timeout is longer than the 30 s after which a service control kills', todo));
  }
  const { lockTimeoutMs, databaseCallTimeoutMs, flushTimeoutMs } = postgresql;
  if (lockTimeoutMs >= Math.min(databaseCallTimeoutMs, flushTimeoutMs)) {
    const what = 'services.postgresql.lock-timeout is not less than query-timeout and flush-timeout';
    const todo = 'Make it less than both, so that the database can still say that a lock was the reason.';
    found.push(warning(what, todo));
  }
  return found;
}

/** Whether a host is this machine, by its spelling alone. */
function isLoopback(host: string): boolean {
  const name = host.replace(/^\[|\]$/g, '').toLowerCase();
  if (isIP(name) === 4) return name.startsWith('127.');
  return name === '::1' || name === 'localhost' || name.endsWith('.localhost');
}
