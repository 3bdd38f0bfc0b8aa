import { hasDevices } from '../storage/push/push-fan-out.ts';
import type { Pool } from '../storage/db/pool.ts';

/** How long a positive answer is cached. */
const CACHE_TTL_MS = 60_000;

/**
 * Whether any device is registered. A negative answer is not cached: another node may register the first device at any
 * time. The fan-out must not skip a message that was written after that registration.
 */
export class AnyDeviceCheck {
  readonly #pool: Pool;
  #hasAnyDevice = false;
  #checkedMs = -Infinity;

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  /** Whether a device was registered, as far as this node knows without a query. */
  get hadDeviceAtLastCheck(): boolean {
    return this.#hasAnyDevice;
  }

  /** An account registered a device. */
  onDeviceRegistered(): void {
    this.#hasAnyDevice = true;
    this.#checkedMs = performance.now();
  }

  /** Returns a cached positive answer; without one, queries the database. */
  async check(): Promise<boolean> {
    const nowMs = performance.now();
    if (this.#hasAnyDevice && nowMs - this.#checkedMs < CACHE_TTL_MS) return true;
    this.#hasAnyDevice = await this.#pool.run(hasDevices);
    this.#checkedMs = nowMs;
    return this.#hasAnyDevice;
  }
}
