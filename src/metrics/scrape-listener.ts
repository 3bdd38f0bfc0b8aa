import type { Config } from '../config/config.ts';
import { ConnectionLimit } from '../connection-limit.ts';
import { HttpListener } from '../http/listener.ts';
import type { Log } from '../log.ts';
import { metricsListener } from './exposition.ts';

/** A stopping server waits for a scrape for at most this long, within which a scrape is answered. */
export const SCRAPE_STOP_TIMEOUT_MS = 2_000;
/** The maximum number of concurrent connections to the port of the metrics. */
const MAX_SCRAPE_CONNECTIONS = 64;

/**
 * The listener on the port of the metrics; it answers that the server is starting, until `setHandler` replaces its
 * handler.
 */
export function createScrapeListener({ metrics, http }: Pick<Config, 'metrics' | 'http'>, log: Log): HttpListener {
  const config = {
    interface: metrics.interface,
    port: metrics.port,
    requestToResponseTimeoutMs: http.requestToResponseTimeoutMs,
    maxHeaderBytes: http.maxHeaderBytes,
  };
  // A separate limit, so that Prometheus can connect while clients use all other connections.
  const limit = new ConnectionLimit(MAX_SCRAPE_CONNECTIONS, log);
  return new HttpListener(config, metricsListener(null, log), { limit, keys: 'metrics.interface, metrics.port' });
}
