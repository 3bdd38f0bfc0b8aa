import type { ReliableEvent } from './bus.ts';

/**
 * A resync is delayed at random by up to this time: nodes that lost notifications together resync at different moments.
 */
const MAX_JITTER_MS = 1_000;
/** The minimum time between two resyncs: while a database is slow, notifications are lost again and again. */
const MIN_RESYNC_INTERVAL_MS = 3_000;
/** Kinds that are announced without delay: revoked tokens must stop working soon, and leases expire. */
const URGENT: ReadonlySet<ReliableEvent> = new Set<ReliableEvent>(['tokensRevoked', 'leasesNeedRebalancing']);

/**
 * Announces the kinds of notifications that were lost: urgent kinds at once, others together, after a random delay and
 * with a minimum time between two announcements.
 */
export class ResyncScheduler {
  readonly #announce: (kinds: ReadonlySet<ReliableEvent>) => void;
  readonly #waiting = new Set<ReliableEvent>();
  #timer: NodeJS.Timeout | null = null;
  #lastAnnouncedMs = Number.NEGATIVE_INFINITY;

  constructor(announce: (kinds: ReadonlySet<ReliableEvent>) => void) {
    this.#announce = announce;
  }

  request(kinds: ReadonlySet<ReliableEvent>): void {
    const urgent = new Set([...kinds].filter((kind) => URGENT.has(kind)));
    if (urgent.size > 0) this.#announce(urgent);
    for (const kind of kinds) if (!urgent.has(kind)) this.#waiting.add(kind);
    if (this.#waiting.size === 0 || this.#timer !== null) return;
    const dueInMs = Math.max(0, this.#lastAnnouncedMs + MIN_RESYNC_INTERVAL_MS - performance.now());
    this.#timer = setTimeout(() => this.#announceWaiting(), dueInMs + Math.random() * MAX_JITTER_MS);
  }

  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#waiting.clear();
  }

  #announceWaiting(): void {
    this.#timer = null;
    this.#lastAnnouncedMs = performance.now();
    const kinds = new Set(this.#waiting);
    this.#waiting.clear();
    this.#announce(kinds);
  }
}
