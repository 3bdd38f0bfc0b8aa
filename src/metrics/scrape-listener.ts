import type { Config } from '../config/config.ts';
import { ConnectionLimit } from '../connection-limit.ts';
import { HttpListener } from '../http/listener.ts';
import type { Log } from '../log.ts';
import { metricsListener } from './exposition.ts';

/** A scrape is answered within two seconds, so that a stop waits no longer for one. */
export const SCRAPE_STOP_TIMEOUT_MS = 2_000;
/** Connections to the metrics at once. */
const MAX_SCRAPE_CONNECTIONS = 64;

/** The listener on the port of the metrics; it answers that the server is starting until it gets another handler. */
export function createScrapeListener({ metrics, http }: Pick<Config, 'metrics' | 'http'>, log: Log): HttpListener {
  const config = {
    interface: metrics.interface,
    port: metrics.port,
    requestToResponseTimeoutMs: http.requestToResponseTimeoutMs,
    maxHeaderBytes: http.maxHeaderBytes,
  };
  // A limit of its own: Prometheus gets through while clients hold all other connections.
  const limit = new ConnectionLimit(MAX_SCRAPE_CONNECTIONS, log);
  return new HttpListener(config, metricsListener(null, log), { limit, keys: 'metrics.interface, metrics.port' });
}
