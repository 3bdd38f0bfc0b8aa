import type { Log } from '../log.ts';
import { BoundedCache } from '../model/bounded-cache.ts';
import type { HookId } from '../model/ids.ts';

/** The log is told of a hook's failures no more often than this. */
const WARNING_INTERVAL_MS = 60_000;
/** Hooks that are remembered; those told of longest ago are forgotten. */
const MAX_REMEMBERED_HOOKS = 10_000;

/** What of a failure is logged. */
interface FailureFields {
  readonly hook: HookId;
  readonly failures: number;
  readonly [field: string]: unknown;
}

/**
 * Tells the log of deliveries that failed. The first failure is news; the repeats would fill the log for as long as a
 * receiver is down, and so would the first ones of a receiver that fails and succeeds in turn.
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
