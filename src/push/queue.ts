import type { Bus } from '../bus/bus.ts';
import type { LogFollower } from '../bus/log-follower.ts';
import type { PushConfig } from '../config/services.ts';
import type { Log } from '../log.ts';
import { deviceKinds, type DeviceKind } from '../model/device.ts';
import type { AccountId } from '../model/ids.ts';
import type { Database } from '../storage/database.ts';
import { countPendingPushes, type PendingPushCount } from '../storage/push/push-devices.ts';
import { expirePushes } from '../storage/push/push-settlement.ts';
import type { Sealer } from '../storage/db/sealed.ts';
import { DeviceTokenCache } from './device-tokens.ts';
import { AnyDeviceCheck } from './any-device-check.ts';
import { createPushFanOut } from './fan-out.ts';
import { ForegroundCache } from './foreground-cache.ts';
import { PendingCountsCache } from './pending-counts-cache.ts';
import { newPushCounts, type PushCounts } from './push-counts.ts';
import type { TestedDevice, VendorReport } from './vendor-report.ts';
import { sendTestPushes } from './test-push.ts';
import type { PushVendors } from './vendors/vendor.ts';
import { VendorQueue } from './vendor-queue.ts';
import { waitAtMost } from './wait-at-most.ts';
import { ReadPushCancellation } from './push-cancellation.ts';

/** The interval of the search for expired rows, as a share of `push.ttl`, and the bounds of this interval. */
const EXPIRY_INTERVAL_TTL_SHARE = 0.1;
const MIN_EXPIRY_INTERVAL_MS = 1_000;
const MAX_EXPIRY_INTERVAL_MS = 60_000;
const MAX_ROWS_PER_EXPIRY_RUN = 1_000;
/** How long `stop` waits for the vendors' drivers to close. */
const VENDOR_CLOSE_TIMEOUT_MS = 2_000;

export interface PushQueueDeps {
  readonly database: Pick<Database, 'general'>;
  readonly bus: Bus;
  readonly sealer: Sealer;
  readonly config: PushConfig;
  /** The title of a push if `push.content` hides title and text. */
  readonly projectName: string;
  readonly vendors: PushVendors;
  /** Accounts with a live connection in the foreground, as far as this node knows. */
  readonly foreground: () => Iterable<AccountId>;
  /**
   * The most milliseconds for which an account that left the foreground may still be listed in `foreground`. So if an
   * account is listed this long after a message came, it was in the foreground when the message came.
   */
  readonly maxPresenceStalenessMs: number;
  /** Returns the number of posts that wait to be written. While there are any, the fan-out pauses for longer. */
  readonly postsWaiting: () => number;
  readonly log: Log;
}

/**
 * The durable queue of pushes. The fan-out turns new messages into rows, and a `VendorQueue` for each vendor sends the
 * rows. All state is in the database, so the queue continues after any end of the process, and several nodes share it.
 */
export class PushQueue {
  /** The counts of pending pushes, cached for frequent callers. */
  readonly pendingCounts: PendingCountsCache;
  readonly #deps: PushQueueDeps;
  readonly #tokens: DeviceTokenCache;
  readonly #anyDeviceCheck: AnyDeviceCheck;
  readonly #fanOut: LogFollower;
  readonly #cancellation: ReadPushCancellation;
  readonly #vendorQueues: ReadonlyMap<DeviceKind, VendorQueue>;
  /** The counts for vendors that are not configured. Only `expiredPushes` can grow there. */
  readonly #unconfiguredVendorCounts = new Map(deviceKinds.map((kind) => [kind, newPushCounts()]));
  #expiryTimer: NodeJS.Timeout | null = null;
  #runningExpiry: Promise<void> = Promise.resolve();

  constructor(deps: PushQueueDeps) {
    this.#deps = deps;
    const { database, bus, config, projectName, vendors, maxPresenceStalenessMs, log } = deps;
    const pool = database.general;
    this.#tokens = new DeviceTokenCache(deps.sealer);
    const foreground = new ForegroundCache(deps.foreground);
    this.pendingCounts = new PendingCountsCache(pool, log);
    this.#anyDeviceCheck = new AnyDeviceCheck(pool);
    const isForeground = (account: AccountId): boolean => foreground.has(account);
    const queueDeps = { pool, tokens: this.#tokens, config, projectName, isForeground, maxPresenceStalenessMs, log };
    this.#vendorQueues = new Map([...vendors].map(([kind, vendor]) => [kind, new VendorQueue(vendor, queueDeps)]));
    this.#fanOut = createPushFanOut({
      ...deps,
      pool,
      deviceKinds: [...vendors.keys()],
      anyDeviceCheck: this.#anyDeviceCheck,
      onPendingRows: () => this.#wakeVendorQueues(),
    });
    this.#cancellation = new ReadPushCancellation({
      pool,
      bus,
      hasAnyDevice: () => this.#anyDeviceCheck.hadDeviceAtLastCheck,
      log,
    });
  }

  /** Starts the queue. If no vendor is configured, the queue only expires rows from earlier. */
  start(): void {
    if (this.#expiryTimer !== null) return;
    const expiryIntervalMs = Math.min(
      Math.max(this.#deps.config.pushExpiresAfterMs * EXPIRY_INTERVAL_TTL_SHARE, MIN_EXPIRY_INTERVAL_MS),
      MAX_EXPIRY_INTERVAL_MS,
    );
    this.#expiryTimer = setInterval(() => {
      this.#runningExpiry = this.#runningExpiry.then(() => this.#expirePending());
    }, expiryIntervalMs);
    if (this.#vendorQueues.size === 0) return;
    for (const queue of this.#vendorQueues.values()) queue.start();
    this.#cancellation.start();
    this.#fanOut.start();
  }

  /**
   * Starts no new work, and waits up to `withinMs` for the work in progress. Rows that are left are sent after the next
   * start.
   */
  async stop(withinMs: number): Promise<void> {
    if (this.#expiryTimer !== null) clearInterval(this.#expiryTimer);
    const stoppingQueues = [...this.#vendorQueues.values()].map((queue) => queue.stop());
    const stopping = Promise.all([
      this.#fanOut.stop(),
      this.#cancellation.stop(),
      this.#runningExpiry,
      ...stoppingQueues,
    ]);
    await waitAtMost(stopping, withinMs);
    await waitAtMost(
      Promise.all([...this.#deps.vendors.values()].map((vendor) => vendor.stop())),
      VENDOR_CLOSE_TIMEOUT_MS,
    );
    await waitAtMost(stopping, VENDOR_CLOSE_TIMEOUT_MS);
  }

  /** Must be called when an account registers a device: after the first one, the queue begins to work. */
  onDeviceRegistered(): void {
    this.#anyDeviceCheck.onDeviceRegistered();
  }

  /** The counts of each vendor since the start. */
  get counts(): ReadonlyMap<DeviceKind, PushCounts> {
    return new Map(deviceKinds.map((kind) => [kind, this.#countsOf(kind)]));
  }

  /** The number of this node's pushes to a vendor that have no answer yet. */
  inFlightOf(kind: DeviceKind): number {
    return this.#vendorQueues.get(kind)?.inFlight ?? 0;
  }

  /**
   * The state of each vendor, in the order of `deviceKinds`. Never rejects: counts that the database does not return
   * are null.
   */
  async status(): Promise<readonly VendorReport[]> {
    const { database, log } = this.#deps;
    const pendingCounts = await database.general.run(countPendingPushes).catch((error: unknown) => {
      log.debug('the pushes that wait cannot be counted', { error });
      return null;
    });
    return deviceKinds.map((kind) => this.#reportOf(kind, pendingCounts));
  }

  /**
   * Sends a test push to all devices of an account at the same time, bypassing the queue. Resolves to the outcome for
   * each device. Removes a device that its vendor no longer knows. Rejects when the database is unavailable.
   */
  sendTestPushes(accountId: AccountId): Promise<readonly TestedDevice[]> {
    const { database, config, projectName, vendors, log } = this.#deps;
    const { pushExpiresAfterMs, timeoutMs } = config;
    return sendTestPushes(accountId, {
      pool: database.general,
      tokens: this.#tokens,
      vendors,
      projectName,
      pushExpiresAfterMs,
      timeoutMs,
      log,
    });
  }

  #countsOf(kind: DeviceKind): PushCounts {
    return this.#vendorQueues.get(kind)?.counts ?? this.#unconfiguredVendorCounts.get(kind)!;
  }

  #reportOf(kind: DeviceKind, pendingCounts: readonly PendingPushCount[] | null): VendorReport {
    const queue = this.#vendorQueues.get(kind);
    const row = pendingCounts?.find((each) => each.kind === kind);
    const countIfNoRow = pendingCounts === null ? null : 0;
    const { outcomes, removedDevices: removed, expiredPushes: expired, lastError } = this.#countsOf(kind);
    const backoffMs = queue?.backoffMs ?? 0;
    return {
      kind,
      configured: queue !== undefined,
      problem: queue?.vendor.problem ?? null,
      pending: row?.pending ?? countIfNoRow,
      due: row?.due ?? countIfNoRow,
      oldestPendingMs: row?.oldestAgeMs ?? null,
      inFlight: this.inFlightOf(kind),
      sent: outcomes.delivered,
      failed: outcomes.failed,
      removed,
      refused: outcomes.refused,
      expired,
      lastError,
      backoffUntil: backoffMs > 0 ? new Date(Date.now() + backoffMs) : null,
    };
  }

  #wakeVendorQueues(): void {
    for (const queue of this.#vendorQueues.values()) queue.wake();
  }

  async #expirePending(): Promise<void> {
    const { database, config, log } = this.#deps;
    try {
      const query = { maxAgeMs: config.pushExpiresAfterMs, limit: MAX_ROWS_PER_EXPIRY_RUN };
      for (const { kind, count } of await database.general.run((sql) => expirePushes(sql, query))) {
        this.#countsOf(kind).expiredPushes += count;
        log.warn('pushes were given up, since their time is over', { vendor: kind, pushes: count });
      }
    } catch (error) {
      log.debug('pushes whose time is over could not be given up', { error });
    }
  }
}
