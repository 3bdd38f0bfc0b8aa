import { hasDevices } from '../storage/push/push-fan-out.ts';
import type { Pool } from '../storage/db/pool.ts';

/** How long the answer "a device is registered" is cached. */
const CACHE_TTL_MS = 60_000;

/**
 * Checks whether any device is registered. The answer "none" is not cached: another node may register the first device
 * at any time. From then on the fan-out must not skip a message.
 */
export class AnyDeviceCheck {
  readonly #pool: Pool;
  #hasAnyDevice = false;
  #checkedAtMs = -Infinity;

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  /** True if this node knows, without a query, that a device is or was registered. */
  get hadDeviceAtLastCheck(): boolean {
    return this.#hasAnyDevice;
  }

  /** Must be called when an account registers a device. */
  onDeviceRegistered(): void {
    this.#hasAnyDevice = true;
    this.#checkedAtMs = performance.now();
  }

  /** True if any device is registered. Queries the database unless the answer "a device is registered" is cached. */
  async isAnyDeviceRegistered(): Promise<boolean> {
    const nowMs = performance.now();
    if (this.#hasAnyDevice && nowMs - this.#checkedAtMs < CACHE_TTL_MS) return true;
    this.#hasAnyDevice = await this.#pool.run(hasDevices);
    this.#checkedAtMs = nowMs;
    return this.#hasAnyDevice;
  }
}
