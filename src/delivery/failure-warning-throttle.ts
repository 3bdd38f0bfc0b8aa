import type { Log } from '../log.ts';
import { BoundedCache } from '../model/bounded-cache.ts';
import type { HookId } from '../model/ids.ts';

/** The shortest time between two warnings about the same hook. */
const WARNING_INTERVAL_MS = 60_000;
/** The most hooks whose last warning is remembered. The hook with the oldest warning is dropped first. */
const MAX_REMEMBERED_HOOKS = 10_000;

/** The fields of a failed delivery that its log line shows. */
interface FailureFields {
  readonly hook: HookId;
  readonly failures: number;
  readonly [field: string]: unknown;
}

/**
 * Logs failed deliveries. Only a hook's first failure in a row is a warning, at most once a minute; all others are
 * debug lines. Otherwise a receiver that is down, or fails every other time, would fill the log.
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
