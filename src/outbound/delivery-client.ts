import { Agent, Pool, type Client, type Dispatcher } from 'undici';
import { BoundedCache } from '../model/bounded-cache.ts';
import type { AddressPolicy } from './address-policy.ts';
import { AttemptInFlight, type HttpAttemptOutcome } from './attempt.ts';
import { Connector } from './connector.ts';
import { IdleConnections, ReuseTrackingConnection } from './keep-alive-connection.ts';
import type { DnsResolver } from './dns-resolver.ts';

export type { HttpAttemptOutcome } from './attempt.ts';
export type { FailureCategory } from './failure.ts';

/** The dependencies and bounds of a {@link DeliveryClient}; times are in milliseconds. */
export interface DeliveryClientOptions {
  readonly policy: AddressPolicy;
  readonly lookup: DnsResolver;
  /** The most connections to one origin (scheme, host and port). Each carries one request at a time. */
  readonly maxInFlightPerHost: number;
  /** The time-out for TCP and TLS together. */
  readonly connectTimeoutMs: number;
  /** The time-out from the start of an attempt, including the connection, until the headers of the answer. */
  readonly responseHeadersTimeoutMs: number;
  /** How many bytes of an answer's body are read, and for how long, to keep the connection usable. */
  readonly maxResponseBytes: number;
  readonly responseBodyReadMs: number;
  readonly userAgent: string;
  /** The PEM certificate of an authority that is trusted in addition to those of the system and of Node.js. */
  readonly ca?: string;
  /**
   * An idle connection is closed after this time (30 s by default), or 2 s before the time that the receiver specifies.
   */
  readonly keepAliveMs?: number;
  /**
   * A connection older than this (60 s by default) is closed after its request. For the next one, the name is looked up
   * and its addresses are checked again.
   */
  readonly connectionLifetimeMs?: number;
  /** The most idle connections to all origins together (256 by default). */
  readonly maxIdleConnections?: number;
}

/** The most URLs that are cached in the form that undici needs. */
const MAX_PARSED_URLS = 1_000;
/** The most bytes of an answer's headers; an attempt with more fails. */
const MAX_HEADER_BYTES = 16 * 1024;

interface ParsedUrl {
  readonly origin: string;
  readonly path: string;
}

/**
 * Sends deliveries: POST over HTTP/1.1, only to addresses that the policy allows. Follows no redirects, and reads only
 * a bounded part of an answer.
 *
 * The client looks a name up and checks the address when it opens a connection. A connection is used for at most
 * `connectionLifetimeMs`, plus `keepAliveMs` idle, plus one attempt. If the name's addresses change meanwhile, the
 * connection stays with the address that was checked.
 */
export class DeliveryClient {
  readonly #options: DeliveryClientOptions;
  readonly #connector: Connector;
  readonly #agent: Agent;
  readonly #parsedUrls = new BoundedCache<string, ParsedUrl>(MAX_PARSED_URLS);
  readonly #inFlight = new Set<AttemptInFlight>();
  #stopping: Promise<void> | null = null;

  constructor(options: DeliveryClientOptions) {
    this.#options = options;
    this.#connector = new Connector(options);
    this.#agent = createAgent(options, this.#connector);
  }

  /**
   * Sends one POST. Resolves to an {@link HttpAttemptOutcome} for every result of the network, within
   * `responseHeadersTimeoutMs` + `responseBodyReadMs`. If all connections to the host are busy, the wait for one takes
   * at most another `responseHeadersTimeoutMs`.
   *
   * @param url absolute http(s) URL, already checked
   * @param beforeWrite called in the tick in which the request is written, and again if the request is repeated. False:
   *   the request is not sent, and the outcome has no category (as when the client is stopped, or no connection becomes
   *   free in time).
   * @param keptAnswerBytes the most bytes of a 2xx answer's body in the outcome; undefined: the outcome has no body.
   *   Such a body must end within `responseHeadersTimeoutMs` of the start.
   * @throws TypeError or undici's InvalidArgumentError for a URL or header that cannot be sent at all, and any
   *   exception of `beforeWrite`.
   */
  post(
    url: string,
    headers: Record<string, string>,
    body: string | Buffer,
    beforeWrite?: () => boolean,
    keptAnswerBytes?: number,
  ): Promise<HttpAttemptOutcome> {
    return new Promise((resolve, reject) => {
      const parsed = this.#parseUrl(url);
      const request: Dispatcher.DispatchOptions = {
        origin: parsed.origin,
        path: parsed.path,
        method: 'POST',
        headers: { 'user-agent': this.#options.userAgent, ...headers },
        body,
      };
      const attempt = new AttemptInFlight(
        this.#options,
        {
          dispatch: (handler) => this.#agent.dispatch(request, handler),
          beforeWrite,
          onSettled: (settled) => this.#inFlight.delete(settled),
          keptAnswerBytes,
        },
        { resolve, reject },
      );
      this.#inFlight.add(attempt);
      if (this.#stopping === null) this.#agent.dispatch(request, attempt);
      else attempt.stop();
    });
  }

  /** Parses a URL for undici. Results are cached, since each attempt needs one. */
  #parseUrl(url: string): ParsedUrl {
    let parsed = this.#parsedUrls.get(url);
    if (parsed === undefined) {
      const { origin, pathname, search } = new URL(url);
      parsed = { origin, path: search === '' ? pathname : pathname + search };
      this.#parsedUrls.set(url, parsed);
    }
    return parsed;
  }

  /**
   * Ends all attempts in flight and closes all connections. The outcomes say nothing about the receivers: the requests
   * may or may not have arrived. Idempotent.
   */
  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  async #stop(): Promise<void> {
    for (const attempt of this.#inFlight) attempt.stop();
    this.#connector.stop();
    await this.#agent.destroy();
  }
}

function createAgent(options: DeliveryClientOptions, connector: Connector): Agent {
  const { maxInFlightPerHost, keepAliveMs = 30_000, connectionLifetimeMs = 60_000, maxIdleConnections = 256 } = options;
  const idle = new IdleConnections({ keepAliveMs, connectionLifetimeMs, maxIdleConnections });
  const clientOptions: Client.Options = {
    pipelining: 1,
    allowH2: false,
    keepAliveTimeout: keepAliveMs,
    keepAliveMaxTimeout: keepAliveMs,
    maxHeaderSize: MAX_HEADER_BYTES,
    // undici's time-outs are off, since AttemptInFlight has its own.
    headersTimeout: 0,
    bodyTimeout: 0,
    // Never called: `ReuseTrackingConnection` sets this option itself. Without it here, a pool would create undici's
    // connector, which ignores the address policy.
    connect: (_target, callback) => callback(new Error('not the guarded connector'), null),
  };
  // The agent drops an origin's pool when its last connection is closed. So `maxIdleConnections` also bounds the pools
  // without a request.
  return new Agent({
    ...clientOptions,
    factory: (origin) =>
      new Pool(origin, {
        ...clientOptions,
        connections: maxInFlightPerHost,
        factory: (poolOrigin, poolOptions) => new ReuseTrackingConnection(poolOrigin, poolOptions, { connector, idle }),
      }),
  });
}
