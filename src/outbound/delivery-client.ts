import { Agent, Pool, type Client, type Dispatcher } from 'undici';
import { BoundedCache } from '../model/bounded-cache.ts';
import type { AddressPolicy } from './address-policy.ts';
import { AttemptInFlight, type HttpAttemptOutcome } from './attempt.ts';
import { Connector } from './connector.ts';
import { IdleConnections, ReuseTrackingConnection } from './keep-alive-connection.ts';
import type { DnsResolver } from './dns-resolver.ts';

export type { HttpAttemptOutcome } from './attempt.ts';
export type { FailureCategory } from './failure.ts';

/** Parts and bounds of a {@link DeliveryClient}; times in milliseconds. */
export interface DeliveryClientOptions {
  readonly policy: AddressPolicy;
  readonly lookup: DnsResolver;
  /** Connections per origin (scheme, host and port); each carries one request at a time. */
  readonly maxInFlightPerHost: number;
  /** Bound for TCP and TLS together. */
  readonly connectTimeoutMs: number;
  /** From the start of an attempt, connecting included, to the answer's headers. */
  readonly responseHeadersTimeoutMs: number;
  /** How many bytes of an answer's body are read, and for how long, to keep the connection usable. */
  readonly responseBytes: number;
  readonly responseBodyReadMs: number;
  readonly userAgent: string;
  /** PEM of an authority trusted in addition. */
  readonly ca?: string;
  /** Idle connections are closed after this (30 s), or 2 s before the time that the receiver specifies. */
  readonly keepAliveMs?: number;
  /**
   * A connection older than this (60 s) is closed after its request: the next one looks the name up and checks the
   * policy again.
   */
  readonly connectionLifetimeMs?: number;
  /** Idle connections over all origins (256). */
  readonly maxIdleConnections?: number;
}

/** Bound of cached URLs in the form that undici takes. */
const MAX_PARSED_URLS = 1_000;
/** Bytes of an answer's headers; more is a failure. */
const MAX_HEADER_BYTES = 16 * 1024;

interface ParsedUrl {
  readonly origin: string;
  readonly path: string;
}

/**
 * Sends deliveries: POST over HTTP/1.1, to allowed addresses only, redirects not followed, answers bounded (the
 * contract's "The forwarded delivery").
 *
 * The client looks a name up and checks the address when it opens a connection. A connection serves for at most
 * `connectionLifetimeMs`, plus `keepAliveMs` idle, plus one attempt. A name that changes meanwhile does not matter,
 * because the connection stays with the allowed address.
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
   * Sends one POST. Every network result becomes an {@link HttpAttemptOutcome}, within `responseHeadersTimeoutMs` +
   * `responseBodyReadMs`. When all connections to the host are busy, the queue adds at most another
   * `responseHeadersTimeoutMs`.
   *
   * @param url absolute http(s) URL, already checked
   * @param beforeWrite called in the tick of the write, and again when the request is repeated. False: the request is
   *   not sent, and the outcome has no category. The outcome is the same when the client was stopped or no connection
   *   was free in time.
   * @param keptAnswerBytes maximum bytes of the answer's body in the outcome of a delivery; undefined: the outcome has
   *   no body. A body for the outcome must end within `responseHeadersTimeoutMs` of the start.
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

  /** Caches the result, since each attempt needs it. */
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
   * Ends attempts in flight without a verdict (they may or may not have arrived) and closes all connections.
   * Idempotent.
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
    // undici's time-outs are off: the attempt has a clock of its own.
    headersTimeout: 0,
    bodyTimeout: 0,
    // `ReuseTrackingConnection` replaces this function. Without the option, a pool would build undici's connector,
    // which ignores the policy.
    connect: (_target, callback) => callback(new Error('not the guarded connector'), null),
  };
  // The agent drops an origin's pool when its last connection is closed, so `maxIdleConnections` bounds idle origins.
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
