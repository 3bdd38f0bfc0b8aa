import { lookup as lookupWithLibuv } from 'node:dns/promises';
import type { DeliveryConfig } from '../config/config.ts';
import { DURATION_BOUNDS_S, Histogram } from '../histogram.ts';

/** An address of a host name, as the resolver returned it. */
interface ResolvedAddress {
  readonly address: string;
  readonly family: 4 | 6;
}

/**
 * Resolves a host name to all its addresses. Rejects with an error that has a `code`, such as `ENOTFOUND` or
 * `EAI_AGAIN`.
 */
export type ResolveName = (host: string) => Promise<readonly { address: string; family: number }[]>;

/** The options of {@link DnsResolver}; times are in milliseconds. */
export interface DnsResolverOptions {
  /** The longest wait of one caller, in the queue and for the resolver together. */
  readonly timeoutMs: number;
  readonly successCacheMs: number;
  readonly failureCacheMs: number;
  /**
   * The most look-ups that run in the resolver at once. Each uses a thread of libuv's pool until the resolver returns.
   */
  readonly maxConcurrentLookups: number;
  /** The most cached names, and also the most callers that wait at once. */
  readonly maxCachedAndMaxWaiting?: number;
  /** The resolver; by default getaddrinfo, so that /etc/hosts and nsswitch.conf apply. */
  readonly resolve?: ResolveName;
  /** A monotonic clock in milliseconds. */
  readonly now?: () => number;
}

/**
 * Thrown when a name has no address, or none was found in time. `code`: the resolver's error code; `ETIMEDOUT`; or
 * `EBUSY` for too many waiting callers.
 */
export class DnsLookupError extends Error {
  override readonly name = 'DnsLookupError';
  readonly code: string;

  constructor(code: string) {
    super(`The host name could not be resolved (${code}).`);
    this.code = code;
  }
}

/** Counts since the start, for metrics. */
interface DnsLookupCounts {
  /** `found` and `failed`: look-ups that the resolver answered with addresses, and with an error. */
  found: number;
  failed: number;
  /** Look-ups that the cache answered, including cached failures. */
  cacheHits: number;
  /** Callers that got no answer in time, or were rejected because too many were waiting. */
  callersTimedOutOrRejected: number;
  /** How long the look-ups in the resolver took, in seconds. */
  readonly durationS: Histogram;
}

type LookupOutcome = readonly ResolvedAddress[] | DnsLookupError;

interface Waiter {
  readonly settle: (outcome: LookupOutcome) => void;
}

/**
 * What is known of a name before its look-up. `slow`: its last look-up was slow. `proven`: it was quick and found an
 * address. `unknown`: neither.
 */
type LookupHistory = 'slow' | 'proven' | 'unknown';

/** A look-up of a name that waits or runs. All callers that ask for the name meanwhile share it. */
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

/** A name counts as slow if its last look-up took longer than this. */
const SLOW_LOOKUP_MS = 1_000;
/** The share of the look-up slots that slow names may use, and the share for slow and unknown names together. */
const SLOW_NAMES_SLOT_SHARE = 0.5;
const UNPROVEN_NAMES_SLOT_SHARE = 0.75;

/**
 * Looks host names up, with a bounded cache, bounded waits and a bounded share of libuv's threads.
 *
 * getaddrinfo cannot be cancelled. A caller gives up after `timeoutMs`, but the look-up keeps its slot until the
 * resolver has returned. If the slot were released earlier, look-ups at dead name servers could occupy every thread of
 * libuv's pool, and block all file reads of the process.
 *
 * Also for this reason not all names may use all slots. Ten names with a silent name server would hold every slot for
 * 10 s at a time, and connections to other names would fail. So slow names share half of the slots, and some slots are
 * reserved for names that were found quickly the last time.
 */
export class DnsResolver {
  readonly counts: DnsLookupCounts = {
    found: 0,
    failed: 0,
    cacheHits: 0,
    callersTimedOutOrRejected: 0,
    durationS: new Histogram(DURATION_BOUNDS_S),
  };
  readonly #options: Required<DnsResolverOptions>;
  readonly #cache = new Map<string, CachedLookup>();
  readonly #lookups = new Map<string, PendingLookup>();
  readonly #queue = new Set<PendingLookup>();
  readonly #running: { [history in LookupHistory]: number } = { slow: 0, proven: 0, unknown: 0 };
  #waitingCallers = 0;

  constructor(options: DnsResolverOptions) {
    this.#options = {
      maxCachedAndMaxWaiting: 1000,
      resolve: (host) => lookupWithLibuv(host, { all: true }),
      now: () => performance.now(),
      ...options,
    };
  }

  /**
   * Resolves to all addresses of `host`, at least one.
   * @throws DnsLookupError when no address was found in `timeoutMs`, or at once when too many callers wait already.
   */
  lookup(host: string): Promise<readonly ResolvedAddress[]> {
    const name = host.toLowerCase();
    const cached = this.#cache.get(name);
    if (cached !== undefined && cached.expiresAt > this.#options.now()) {
      this.counts.cacheHits += 1;
      return asPromise(cached.outcome);
    }
    if (this.#waitingCallers >= this.#options.maxCachedAndMaxWaiting) {
      this.counts.callersTimedOutOrRejected += 1;
      return Promise.reject(new DnsLookupError('EBUSY'));
    }
    return this.#waitForLookup(this.#joinOrQueueLookup(name, cached?.history ?? 'unknown'));
  }

  #joinOrQueueLookup(host: string, history: LookupHistory): PendingLookup {
    const existing = this.#lookups.get(host);
    if (existing !== undefined) return existing;
    const pending: PendingLookup = { host, history, waiters: new Set(), started: false };
    this.#lookups.set(host, pending);
    this.#queue.add(pending);
    this.#startQueuedLookups();
    return pending;
  }

  #waitForLookup(pending: PendingLookup): Promise<readonly ResolvedAddress[]> {
    return new Promise((resolve, reject) => {
      const settle = (outcome: LookupOutcome): void => {
        clearTimeout(timer);
        this.#waitingCallers -= 1;
        pending.waiters.delete(waiter);
        if (outcome instanceof DnsLookupError) reject(outcome);
        else resolve(outcome);
      };
      const waiter: Waiter = { settle };
      const timer = setTimeout(() => this.#onTimeout(pending, waiter), this.#options.timeoutMs);
      this.#waitingCallers += 1;
      pending.waiters.add(waiter);
    });
  }

  #onTimeout(pending: PendingLookup, waiter: Waiter): void {
    const outcome = new DnsLookupError('ETIMEDOUT');
    this.counts.callersTimedOutOrRejected += 1;
    // If a running look-up has exceeded this caller's time-out, the next caller would probably wait in vain too. So the
    // failure is cached.
    if (pending.started) this.#cacheOutcome(pending.host, outcome, true);
    waiter.settle(outcome);
    if (pending.started || pending.waiters.size > 0) return;
    this.#queue.delete(pending);
    this.#lookups.delete(pending.host);
  }

  #startQueuedLookups(): void {
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
    if (history !== 'proven' && slow + unknown >= Math.ceil(maxConcurrentLookups * UNPROVEN_NAMES_SLOT_SHARE))
      return false;
    return history !== 'slow' || slow < Math.max(1, Math.floor(maxConcurrentLookups * SLOW_NAMES_SLOT_SHARE));
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
    this.#startQueuedLookups();
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

  /**
   * Caches an outcome. After its expiry it is not returned any more, but its `history` still says whether the name is
   * slow.
   */
  #cacheOutcome(host: string, outcome: LookupOutcome, slow: boolean): void {
    const { successCacheMs, failureCacheMs, maxCachedAndMaxWaiting, now } = this.#options;
    this.#cache.delete(host);
    const isFailure = outcome instanceof DnsLookupError;
    const expiresAt = now() + (isFailure ? failureCacheMs : successCacheMs);
    this.#cache.set(host, { outcome, expiresAt, history: slow ? 'slow' : isFailure ? 'unknown' : 'proven' });
    if (this.#cache.size <= maxCachedAndMaxWaiting) return;
    // A Map keeps the order of insertion, and a renewed entry is inserted again. So the first entry is the oldest.
    for (const oldest of this.#cache.keys()) {
      this.#cache.delete(oldest);
      return;
    }
  }
}

function asPromise(outcome: LookupOutcome): Promise<readonly ResolvedAddress[]> {
  return outcome instanceof DnsLookupError ? Promise.reject(outcome) : Promise.resolve(outcome);
}

/** Creates the resolver with the settings of `delivery`. */
export function createDnsResolver(delivery: DeliveryConfig): DnsResolver {
  return new DnsResolver({
    timeoutMs: delivery.dnsTimeoutMs,
    successCacheMs: delivery.dnsCacheTtlMs,
    failureCacheMs: delivery.dnsNegativeTtlMs,
    maxConcurrentLookups: delivery.dnsConcurrency,
  });
}
