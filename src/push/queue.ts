import type { Bus } from '../bus/bus.ts';
import type { PushConfig } from '../config/config.ts';
import type { Log } from '../log.ts';
import { deviceKinds, type DeviceKind } from '../model/device.ts';
import type { AccountId } from '../model/ids.ts';
import type { Database } from '../storage/database.ts';
import { countPending, type PendingCount } from '../storage/push/push-devices.ts';
import { expirePushes } from '../storage/push/push-settlement.ts';
import type { Sealer } from '../storage/db/sealed.ts';
import { DeviceTokens } from './device-tokens.ts';
import { DeviceCheck } from './device-check.ts';
import { FanOut } from './fan-out.ts';
import { ForegroundCache } from './foreground-cache.ts';
import { PendingReport } from './pending-report.ts';
import { newPushCounts, type PushCounts } from './push-counts.ts';
import type { TestedDevice, VendorReport } from './vendor-report.ts';
import { sendTests } from './test-push.ts';
import type { PushVendors } from './vendors/vendor.ts';
import { VendorQueue } from './vendor-queue.ts';
import { withTimeout } from './with-timeout.ts';
import { PushCancellation } from './push-cancellation.ts';

/** What is given up is looked for in such steps of `push.ttl`, but within these bounds. */
const EXPIRY_SHARE = 0.1;
const EXPIRY_MIN_MS = 1_000;
const EXPIRY_MAX_MS = 60_000;
const EXPIRY_ROWS = 1_000;
/** What drivers that were told to close may still take. */
const CLOSE_MS = 2_000;

/** What the queue works with. */
export interface PushDeps {
  readonly database: Pick<Database, 'general'>;
  readonly bus: Bus;
  readonly sealer: Sealer;
  readonly config: PushConfig;
  /** What a push is titled by that is to tell nothing. */
  readonly projectName: string;
  readonly vendors: PushVendors;
  /** Who has a live connection in the foreground, as far as this node knows. */
  readonly foreground: () => Iterable<AccountId>;
  /** Whoever is in the foreground so long after a message, in ms, was there when it came. */
  readonly presenceSettledMs: number;
  /** Posts that wait to be written: while there are any, pushes keep out of their way. */
  readonly postsWaiting: () => number;
  readonly log: Log;
}

/**
 * The durable queue of pushes: new messages become rows (`FanOut`), and each vendor's rows are sent by a queue of its
 * own (`VendorQueue`). Everything goes on from the database, however the process ends, and several nodes share it.
 */
export class PushQueue {
  /** What waits, for those who ask often. */
  readonly pending: PendingReport;
  readonly #deps: PushDeps;
  readonly #tokens: DeviceTokens;
  readonly #deviceCheck: DeviceCheck;
  readonly #fanOut: FanOut;
  readonly #cancellation: PushCancellation;
  readonly #queues: ReadonlyMap<DeviceKind, VendorQueue>;
  /** Of vendors that are not configured: nothing but what is given up. */
  readonly #idleCounts = new Map(deviceKinds.map((kind) => [kind, newPushCounts()]));
  #expiring: NodeJS.Timeout | null = null;
  #expiry: Promise<void> = Promise.resolve();

  constructor(deps: PushDeps) {
    this.#deps = deps;
    const { database, bus, config, projectName, vendors, presenceSettledMs, log } = deps;
    const pool = database.general;
    this.#tokens = new DeviceTokens(deps.sealer);
    const foreground = new ForegroundCache(deps.foreground);
    this.pending = new PendingReport(pool, log);
    this.#deviceCheck = new DeviceCheck(pool);
    const isForeground = (account: AccountId): boolean => foreground.has(account);
    const queueDeps = { pool, tokens: this.#tokens, config, projectName, isForeground, presenceSettledMs, log };
    this.#queues = new Map([...vendors].map(([kind, vendor]) => [kind, new VendorQueue(vendor, queueDeps)]));
    this.#fanOut = new FanOut({
      ...deps,
      pool,
      kinds: [...vendors.keys()],
      deviceCheck: this.#deviceCheck,
      onRows: () => this.#wakeAll(),
    });
    this.#cancellation = new PushCancellation({ pool, bus, hasDevices: () => this.#deviceCheck.hasAny, log });
  }

  /** Begins to work. Where no vendor is configured it gives up what waits from earlier, and nothing else. */
  start(): void {
    if (this.#expiring !== null) return;
    const everyMs = Math.min(Math.max(this.#deps.config.ttlMs * EXPIRY_SHARE, EXPIRY_MIN_MS), EXPIRY_MAX_MS);
    this.#expiring = setInterval(() => {
      this.#expiry = this.#expiry.then(() => this.#expire());
    }, everyMs);
    if (this.#queues.size === 0) return;
    for (const queue of this.#queues.values()) queue.start();
    this.#cancellation.start();
    this.#fanOut.start();
  }

  /** Takes nothing new and waits up to `withinMs` for what is under way; the rest is found by the next start. */
  async stop(withinMs: number): Promise<void> {
    if (this.#expiring !== null) clearInterval(this.#expiring);
    const queues = [...this.#queues.values()].map((queue) => queue.stop());
    const stopping = Promise.all([this.#fanOut.stop(), this.#cancellation.stop(), this.#expiry, ...queues]);
    await withTimeout(stopping, withinMs);
    await withTimeout(Promise.all([...this.#deps.vendors.values()].map((vendor) => vendor.stop())), CLOSE_MS);
    await withTimeout(stopping, CLOSE_MS);
  }

  /** Somebody registered a device: where there was none before, the queue begins to look. */
  deviceRegistered(): void {
    this.#deviceCheck.onRegistered();
  }

  /** What was counted of each vendor since the start. */
  get counts(): ReadonlyMap<DeviceKind, PushCounts> {
    return new Map(deviceKinds.map((kind) => [kind, this.#countsOf(kind)]));
  }

  /** Pushes of a vendor that have no answer yet. */
  inFlight(kind: DeviceKind): number {
    return this.#queues.get(kind)?.inFlight ?? 0;
  }

  /** How each vendor is doing, in the order of `deviceKinds`. Never rejects: what the database does not tell is null. */
  async status(): Promise<readonly VendorReport[]> {
    const { database, log } = this.#deps;
    const pending = await database.general.run(countPending).catch((error: unknown) => {
      log.debug('the pushes that wait cannot be counted', { error });
      return null;
    });
    return deviceKinds.map((kind) => this.#report(kind, pending));
  }

  /**
   * Sends a push to each of an account's devices at once, past the queue, and says by device what became of it. A device
   * that its vendor does not know any more is removed as always. Rejects when the database is away.
   */
  sendTest(accountId: AccountId): Promise<readonly TestedDevice[]> {
    const { database, config, projectName, vendors, log } = this.#deps;
    const { ttlMs, timeoutMs } = config;
    return sendTests(accountId, {
      pool: database.general,
      tokens: this.#tokens,
      vendors,
      projectName,
      ttlMs,
      timeoutMs,
      log,
    });
  }

  #countsOf(kind: DeviceKind): PushCounts {
    return this.#queues.get(kind)?.counts ?? this.#idleCounts.get(kind)!;
  }

  #report(kind: DeviceKind, pending: readonly PendingCount[] | null): VendorReport {
    const queue = this.#queues.get(kind);
    const row = pending?.find((each) => each.kind === kind);
    const noRows = pending === null ? null : 0;
    const { outcomes, removed, expired, lastError } = this.#countsOf(kind);
    const backoffMs = queue?.backoffMs ?? 0;
    return {
      kind,
      configured: queue !== undefined,
      problem: queue?.vendor.problem ?? null,
      pending: row?.pending ?? noRows,
      due: row?.due ?? noRows,
      oldestPendingMs: row?.oldestMs ?? null,
      inFlight: this.inFlight(kind),
      sent: outcomes.delivered,
      failed: outcomes.failed,
      removed,
      refused: outcomes.refused,
      expired,
      lastError,
      restsUntil: backoffMs > 0 ? new Date(Date.now() + backoffMs) : null,
    };
  }

  #wakeAll(): void {
    for (const queue of this.#queues.values()) queue.wake();
  }

  async #expire(): Promise<void> {
    const { database, config, log } = this.#deps;
    try {
      const query = { afterMs: config.ttlMs, limit: EXPIRY_ROWS };
      for (const { kind, count } of await database.general.run((sql) => expirePushes(sql, query))) {
        this.#countsOf(kind).expired += count;
        log.warn('pushes were given up, since their time is over', { vendor: kind, pushes: count });
      }
    } catch (error) {
      log.debug('pushes whose time is over could not be given up', { error });
    }
  }
}
