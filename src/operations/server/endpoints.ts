import type { Config } from '../../config/config.ts';
import { liveTransportSchemes } from '../../model/transport.ts';

/** Where clients connect to, as `/v1/about` announces it. */
interface EndpointSources {
  readonly config: Config;
  /** Where the server listens, as addresses that begin with a scheme. */
  readonly listeners: readonly string[];
}

const SCHEMES = Object.values(liveTransportSchemes).flatMap(({ plain, tls }) => [plain, tls]);
const LIVE_LISTENER_PATTERN = new RegExp(`^(${SCHEMES.join('|')})://(.+):(\\d+)$`);

/**
 * The addresses that live clients connect to. What the administrator announces stands alone; else they are `/v1/live`
 * beneath the public address of the HTTP interface, and the listeners that can be reached from elsewhere. Those on
 * loopback are told only where the public address is on loopback as well: elsewhere they would lead to the client's own
 * machine.
 */
export function announcedEndpoints({ config, listeners }: EndpointSources): readonly string[] {
  if (config.publicEndpoints.length > 0) return config.publicEndpoints;
  const base = new URL(config.http.baseUri);
  const live = `${config.http.baseUri.replace(/^http/, 'ws')}/v1/live`;
  const isLocal = isLoopback(base.hostname);
  // Not as URLs, which leave out the port where it is the scheme's own.
  const reachable = listeners.flatMap((listener) => {
    const [, scheme, host, port] = LIVE_LISTENER_PATTERN.exec(listener) ?? [];
    if (host === undefined || (isLoopback(host) && !isLocal)) return [];
    return [`${scheme}://${isWildcard(host) ? base.hostname : host}:${port}`];
  });
  return [live, ...new Set(reachable)];
}

/** `hostname` as a URL has it: IPv6 in brackets, IPv4 in its plain form. */
function isLoopback(hostname: string): boolean {
  return /^(?:localhost|.+\.localhost|127(?:\.\d+){3}|\[::1\])$/.test(hostname);
}

function isWildcard(hostname: string): boolean {
  return hostname === '0.0.0.0' || hostname === '[::]';
}
