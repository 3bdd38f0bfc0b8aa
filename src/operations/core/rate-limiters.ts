import type { LimitsConfig } from '../../config/config.ts';
import { ParseBudget } from './parse-budget.ts';
import { RateLimiter } from './rate-limiter.ts';
import type { Services } from './services.ts';

const MAX_REGISTERING_GROUPS = 10_000;
const MAX_CHANGING_GROUPS = 10_000;
const MAX_SESSIONS = 100_000;
/** Clients say every few seconds that somebody writes; more than one device may. */
const TYPING_PER_SECOND = 1;
const MAX_TYPING = 10_000;

/** How often things may be done, and how long callers may be parsed. */
export function createRateLimiters(
  limits: LimitsConfig,
): Pick<Services, 'sessionLimiter' | 'typingLimiter' | 'parseBudget' | 'registrationLimiter' | 'hookChangeLimiter'> {
  const { sessionRate, sessionBurst, hookRegistrationsPerMinute, hookChangesPerMinute, parseTimeMs } = limits;
  return {
    sessionLimiter: new RateLimiter({ perSecond: sessionRate, burst: sessionBurst, keys: MAX_SESSIONS }),
    parseBudget: new ParseBudget(parseTimeMs),
    typingLimiter: new RateLimiter({ perSecond: TYPING_PER_SECOND, burst: TYPING_PER_SECOND, keys: MAX_TYPING }),
    registrationLimiter: perMinute(hookRegistrationsPerMinute, MAX_REGISTERING_GROUPS),
    hookChangeLimiter: perMinute(hookChangesPerMinute, MAX_CHANGING_GROUPS),
  };
}

/** A rate of so many uses a minute and key, all of which may come at once. */
function perMinute(uses: number, keys: number): RateLimiter<number> {
  return new RateLimiter({ perSecond: uses / 60, burst: uses, keys });
}
