import type { Log } from '../log.ts';
import { BoundedCache } from '../model/bounded-cache.ts';
import type { HookId } from '../model/ids.ts';

/** Warnings about one hook are at least this far apart. */
const WARNING_INTERVAL_MS = 60_000;
/** Hooks that are remembered; those warned about longest ago are dropped first. */
const MAX_REMEMBERED_HOOKS = 10_000;

/** The logged fields of a failure. */
interface FailureFields {
  readonly hook: HookId;
  readonly failures: number;
  readonly [field: string]: unknown;
}

/**
 * Logs failed deliveries. Only the first failure is a warning. Repeats would fill the log while a receiver is down, and
 * so would first failures of a receiver that fails and succeeds in turn.
 */
export class FirstFailureWarningThrottle {
  readonly #log: Log;
  readonly #recentlyWarned = new BoundedCache<HookId, true>(MAX_REMEMBERED_HOOKS, { ttl: WARNING_INTERVAL_MS });

  constructor(log: Log) {
    this.#log = log;
  }

  warnFirstElseDebug(fields: FailureFields): void {
    if (fields.failures > 1 || this.#recentlyWarned.has(fields.hook)) {
      this.#log.debug('a delivery failed again', fields);
      return;
    }
    this.#recentlyWarned.set(fields.hook, true);
    this.#log.warn('a delivery failed', fields);
  }
}
