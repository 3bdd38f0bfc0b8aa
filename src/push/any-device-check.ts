import { hasDevices } from '../storage/push/push-fan-out.ts';
import type { Pool } from '../storage/db/pool.ts';

/** Devices that there were are believed in for so long. */
const CACHE_TTL_MS = 60_000;

/**
 * Whether anybody has a device. Where nobody has, that is asked anew each time: another node may have registered the
 * first one, and a message that was written after it must not be passed over.
 */
export class AnyDeviceCheck {
  readonly #pool: Pool;
  #hasAnyDevice = false;
  #checkedMs = -Infinity;

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  /** The last that was known. */
  get hadDeviceAtLastCheck(): boolean {
    return this.#hasAnyDevice;
  }

  /** Somebody registered one. */
  onDeviceRegistered(): void {
    this.#hasAnyDevice = true;
    this.#checkedMs = performance.now();
  }

  /** Asks the database, unless there were some a moment ago. */
  async check(): Promise<boolean> {
    const nowMs = performance.now();
    if (this.#hasAnyDevice && nowMs - this.#checkedMs < CACHE_TTL_MS) return true;
    this.#hasAnyDevice = await this.#pool.run(hasDevices);
    this.#checkedMs = nowMs;
    return this.#hasAnyDevice;
  }
}
