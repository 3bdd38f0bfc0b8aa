import type { Config } from '../config/config.ts';
import { ConnectionLimit } from '../connection-limit.ts';
import { HttpListener } from '../http/listener.ts';
import type { Log } from '../log.ts';
import { metricsListener } from './exposition.ts';

/** A stop waits this long for the answer to a scrape. */
export const SCRAPE_STOP_TIMEOUT_MS = 2_000;
/** The most concurrent connections to the metrics. */
const MAX_SCRAPE_CONNECTIONS = 64;

/** The listener on the port of the metrics; until it gets another handler, it answers that the server is starting. */
export function createScrapeListener({ metrics, http }: Pick<Config, 'metrics' | 'http'>, log: Log): HttpListener {
  const config = {
    interface: metrics.interface,
    port: metrics.port,
    requestToResponseTimeoutMs: http.requestToResponseTimeoutMs,
    maxHeaderBytes: http.maxHeaderBytes,
  };
  // A separate limit: Prometheus gets through while clients hold all other connections.
  const limit = new ConnectionLimit(MAX_SCRAPE_CONNECTIONS, log);
  return new HttpListener(config, metricsListener(null, log), { limit, keys: 'metrics.interface, metrics.port' });
}
