import { lookup as lookupWithLibuv } from 'node:dns/promises';
import type { DeliveryConfig } from '../config/config.ts';
import { DURATION_BOUNDS_S, Histogram } from '../histogram.ts';

/** One address of a host name, as the resolver returned it. */
interface ResolvedAddress {
  readonly address: string;
  readonly family: 4 | 6;
}

/** Finds all addresses of a host name; rejects with an error that carries a `code` (`ENOTFOUND`, `EAI_AGAIN`). */
export type ResolveName = (host: string) => Promise<readonly { address: string; family: number }[]>;

/** The bounds of {@link DnsResolver}; times in milliseconds. */
export interface DnsResolverOptions {
  /** Maximum wait of one caller, in the queue and for the resolver together. */
  readonly timeoutMs: number;
  readonly successCacheMs: number;
  readonly failureCacheMs: number;
  /** Concurrent look-ups inside the resolver: each holds a thread of libuv's pool until the resolver returns. */
  readonly maxConcurrentLookups: number;
  /** Bound of cached names, and of callers that wait concurrently. */
  readonly maxCachedAndMaxWaiting?: number;
  /** Default: getaddrinfo, so that /etc/hosts and nsswitch.conf apply. */
  readonly resolve?: ResolveName;
  /** A monotonic clock in milliseconds. */
  readonly now?: () => number;
}

/** A name has no address, or none was found in time. `code` is the resolver's, else `ETIMEDOUT` or `EBUSY`. */
export class DnsLookupError extends Error {
  override readonly name = 'DnsLookupError';
  readonly code: string;

  constructor(code: string) {
    super(`The host name could not be resolved (${code}).`);
    this.code = code;
  }
}

/** Counters since the start, for metrics. */
interface DnsLookupCounts {
  /** Answers of the resolver. */
  found: number;
  failed: number;
  /** Look-ups that the cache answered, including cached failures. */
  cached: number;
  /** Callers that got no answer in time or were too many. */
  callersTimedOutOrRejected: number;
  /** How long the resolver took. */
  readonly durationS: Histogram;
}

type LookupOutcome = readonly ResolvedAddress[] | DnsLookupError;

interface Waiter {
  readonly settle: (outcome: LookupOutcome) => void;
}

/** The class of a name before its look-up: its last look-up was slow, it was quick and found an address, or neither. */
type LookupHistory = 'slow' | 'proven' | 'unknown';

/** One look-up of one name, shared by all callers of that name meanwhile. */
interface PendingLookup {
  readonly host: string;
  readonly history: LookupHistory;
  readonly waiters: Set<Waiter>;
  started: boolean;
}

interface CachedLookup {
  readonly outcome: LookupOutcome;
  readonly expiresAt: number;
  readonly history: LookupHistory;
}

/** A name is slow if its last look-up took longer than this. */
const SLOW_LOOKUP_MS = 1_000;
/** The share of concurrent look-ups for slow names, and the share for slow and unknown names together. */
const SLOW_SHARE = 0.5;
const UNPROVEN_SHARE = 0.75;

/**
 * Look-ups of host names with a bounded cache, bounded waiting and a bounded share of libuv's threads.
 *
 * getaddrinfo cannot be cancelled. A caller gives up after `timeoutMs`, but the slot stays taken until the resolver has
 * really returned. If it were released earlier, dead name servers could occupy every thread of the pool, and block all
 * file reads of the process.
 *
 * For the same reason not all names may use all slots. Ten names with a silent name server would hold every slot for 10
 * s at a time. A new connection to a quick name would wait, and fail. Slow names share half of the slots, and some are
 * reserved for names that were found quickly before.
 */
export class DnsResolver {
  readonly counts: DnsLookupCounts = {
    found: 0,
    failed: 0,
    cached: 0,
    callersTimedOutOrRejected: 0,
    durationS: new Histogram(DURATION_BOUNDS_S),
  };
  readonly #options: Required<DnsResolverOptions>;
  readonly #cache = new Map<string, CachedLookup>();
  readonly #lookups = new Map<string, PendingLookup>();
  readonly #queue = new Set<PendingLookup>();
  readonly #running: { [history in LookupHistory]: number } = { slow: 0, proven: 0, unknown: 0 };
  #waiting = 0;

  constructor(options: DnsResolverOptions) {
    this.#options = {
      maxCachedAndMaxWaiting: 1000,
      resolve: (host) => lookupWithLibuv(host, { all: true }),
      now: () => performance.now(),
      ...options,
    };
  }

  /**
   * All addresses of `host`, at least one.
   * @throws DnsLookupError when no address was found in `timeoutMs`, or at once when too many callers wait already.
   */
  lookup(host: string): Promise<readonly ResolvedAddress[]> {
    const name = host.toLowerCase();
    const known = this.#cache.get(name);
    if (known !== undefined && known.expiresAt > this.#options.now()) {
      this.counts.cached += 1;
      return asPromise(known.outcome);
    }
    if (this.#waiting >= this.#options.maxCachedAndMaxWaiting) {
      this.counts.callersTimedOutOrRejected += 1;
      return Promise.reject(new DnsLookupError('EBUSY'));
    }
    return this.#waitForLookup(this.#joinOrQueueLookup(name, known?.history ?? 'unknown'));
  }

  #joinOrQueueLookup(host: string, history: LookupHistory): PendingLookup {
    const existing = this.#lookups.get(host);
    if (existing !== undefined) return existing;
    const pending: PendingLookup = { host, history, waiters: new Set(), started: false };
    this.#lookups.set(host, pending);
    this.#queue.add(pending);
    this.#startNext();
    return pending;
  }

  #waitForLookup(pending: PendingLookup): Promise<readonly ResolvedAddress[]> {
    return new Promise((resolve, reject) => {
      const settle = (outcome: LookupOutcome): void => {
        clearTimeout(timer);
        this.#waiting -= 1;
        pending.waiters.delete(waiter);
        if (outcome instanceof DnsLookupError) reject(outcome);
        else resolve(outcome);
      };
      const waiter: Waiter = { settle };
      const timer = setTimeout(() => this.#onTimeout(pending, waiter), this.#options.timeoutMs);
      this.#waiting += 1;
      pending.waiters.add(waiter);
    });
  }

  #onTimeout(pending: PendingLookup, waiter: Waiter): void {
    const outcome = new DnsLookupError('ETIMEDOUT');
    this.counts.callersTimedOutOrRejected += 1;
    // A started look-up that exceeded one caller's time-out would also exceed the next caller's: so the failure is
    // cached.
    if (pending.started) this.#cacheOutcome(pending.host, outcome, true);
    waiter.settle(outcome);
    if (pending.started || pending.waiters.size > 0) return;
    this.#queue.delete(pending);
    this.#lookups.delete(pending.host);
  }

  #startNext(): void {
    for (const pending of this.#queue) {
      if (!this.#hasCapacity(pending.history)) continue;
      this.#queue.delete(pending);
      pending.started = true;
      this.#running[pending.history] += 1;
      void this.#run(pending);
    }
  }

  #hasCapacity(history: LookupHistory): boolean {
    const { maxConcurrentLookups } = this.#options;
    const { slow, proven, unknown } = this.#running;
    if (slow + proven + unknown >= maxConcurrentLookups) return false;
    if (history !== 'proven' && slow + unknown >= Math.ceil(maxConcurrentLookups * UNPROVEN_SHARE)) return false;
    return history !== 'slow' || slow < Math.max(1, Math.floor(maxConcurrentLookups * SLOW_SHARE));
  }

  async #run(pending: PendingLookup): Promise<void> {
    const startedAt = this.#options.now();
    const outcome = await this.#resolve(pending.host);
    const durationMs = this.#options.now() - startedAt;
    this.counts.durationS.observe(durationMs / 1_000);
    this.counts[outcome instanceof DnsLookupError ? 'failed' : 'found'] += 1;
    this.#running[pending.history] -= 1;
    this.#lookups.delete(pending.host);
    this.#cacheOutcome(pending.host, outcome, durationMs > SLOW_LOOKUP_MS);
    for (const waiter of pending.waiters) waiter.settle(outcome);
    this.#startNext();
  }

  async #resolve(host: string): Promise<LookupOutcome> {
    try {
      const addresses = await this.#options.resolve(host);
      if (addresses.length === 0) return new DnsLookupError('ENODATA');
      return addresses.map(({ address, family }) => ({ address, family: family === 6 ? 6 : 4 }));
    } catch (error) {
      const { code } = error as { code?: unknown };
      return new DnsLookupError(typeof code === 'string' ? code : 'EAI_FAIL');
    }
  }

  /** Caches an outcome. An expired outcome is not used, but still classifies its name (`LookupHistory`). */
  #cacheOutcome(host: string, outcome: LookupOutcome, slow: boolean): void {
    const { successCacheMs, failureCacheMs, maxCachedAndMaxWaiting, now } = this.#options;
    this.#cache.delete(host);
    const isFailure = outcome instanceof DnsLookupError;
    const expiresAt = now() + (isFailure ? failureCacheMs : successCacheMs);
    this.#cache.set(host, { outcome, expiresAt, history: slow ? 'slow' : isFailure ? 'unknown' : 'proven' });
    if (this.#cache.size <= maxCachedAndMaxWaiting) return;
    // Maps keep insertion order, and a renewed entry is inserted again: the first is the oldest.
    for (const oldest of this.#cache.keys()) {
      this.#cache.delete(oldest);
      return;
    }
  }
}

function asPromise(outcome: LookupOutcome): Promise<readonly ResolvedAddress[]> {
  return outcome instanceof DnsLookupError ? Promise.reject(outcome) : Promise.resolve(outcome);
}

/** The resolver that the configuration describes. */
export function createDnsResolver(delivery: DeliveryConfig): DnsResolver {
  return new DnsResolver({
    timeoutMs: delivery.dnsTimeoutMs,
    successCacheMs: delivery.dnsCacheTtlMs,
    failureCacheMs: delivery.dnsNegativeTtlMs,
    maxConcurrentLookups: delivery.dnsConcurrency,
  });
}
