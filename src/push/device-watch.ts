import { hasDevices } from '../storage/push-fan-out.ts';
import type { Pool } from '../storage/pool.ts';

/** Devices that there were are believed in for so long. */
const BELIEVED_MS = 60_000;

/**
 * Whether anybody has a device. Where nobody has, that is asked anew each time: another node may have registered the
 * first one, and a message that was written after it must not be passed over.
 */
export class DeviceWatch {
  readonly #pool: Pool;
  #present = false;
  #askedMs = -Infinity;

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  /** The last that was known. */
  get present(): boolean {
    return this.#present;
  }

  /** Somebody registered one. */
  registered(): void {
    this.#present = true;
    this.#askedMs = performance.now();
  }

  /** Asks the database, unless there were some a moment ago. */
  async look(): Promise<boolean> {
    const nowMs = performance.now();
    if (this.#present && nowMs - this.#askedMs < BELIEVED_MS) return true;
    this.#present = await this.#pool.run(hasDevices);
    this.#askedMs = nowMs;
    return this.#present;
  }
}
