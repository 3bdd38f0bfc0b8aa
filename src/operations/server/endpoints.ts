import type { Config } from '../../config/config.ts';
import { liveTransportSchemes } from '../../model/transport.ts';

/** The values that determine the addresses that `/v1/about` announces to clients. */
interface EndpointSources {
  readonly config: Config;
  /** Addresses on which the server listens; each begins with a scheme. */
  readonly listeners: readonly string[];
}

const SCHEMES = Object.values(liveTransportSchemes).flatMap(({ plain, tls }) => [plain, tls]);
const LIVE_LISTENER_PATTERN = new RegExp(`^(${SCHEMES.join('|')})://(.+):(\\d+)$`);

/**
 * The addresses that live clients connect to. If the configuration has public endpoints, they are the only ones.
 * Otherwise they are `/v1/live` below `http.base-uri`, and the listeners. Listeners on loopback are left out unless
 * `http.base-uri` is on loopback too: on another machine, their addresses would lead to that machine itself.
 */
export function announcedEndpoints({ config, listeners }: EndpointSources): readonly string[] {
  if (config.publicEndpoints.length > 0) return config.publicEndpoints;
  const base = new URL(config.http.baseUri);
  const live = `${config.http.baseUri.replace(/^http/, 'ws')}/v1/live`;
  const isLocal = isLoopback(base.hostname);
  // `URL` is not used to parse the listeners, since it drops the default port of a scheme.
  const reachable = listeners.flatMap((listener) => {
    const [, scheme, host, port] = LIVE_LISTENER_PATTERN.exec(listener) ?? [];
    if (host === undefined || (isLoopback(host) && !isLocal)) return [];
    return [`${scheme}://${isWildcard(host) ? base.hostname : host}:${port}`];
  });
  return [live, ...new Set(reachable)];
}

/** Whether a host is loopback. `hostname` is as in a URL: IPv6 in brackets, IPv4 in its plain form. */
function isLoopback(hostname: string): boolean {
  return /^(?:localhost|.+\.localhost|127(?:\.\d+){3}|\[::1\])$/.test(hostname);
}

function isWildcard(hostname: string): boolean {
  return hostname === '0.0.0.0' || hostname === '[::]';
}
