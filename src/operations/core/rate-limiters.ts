import type { LimitsConfig } from '../../config/config.ts';
import { ParseBudget } from './parse-budget.ts';
import { RateLimiter } from './rate-limiter.ts';
import type { Services } from './services.ts';

const HOOK_REGISTRATION_LIMITER_GROUPS = 10_000;
const HOOK_CHANGE_LIMITER_GROUPS = 10_000;
const SESSION_REQUEST_LIMITER_KEYS = 100_000;
/**
 * Limits a member's signals of typing. A client sends one every few seconds, and a member may type on several devices.
 */
const TYPING_PER_MEMBER_PER_SECOND = 1;
const TYPING_LIMITER_MEMBERS = 10_000;

/** Makes the rate limiters, and the budget of parse time. */
export function createRateLimiters(
  limits: LimitsConfig,
): Pick<
  Services,
  | 'sessionRequestLimiter'
  | 'typingLimiterByMember'
  | 'parseBudget'
  | 'hookRegistrationLimiterByGroup'
  | 'hookChangeLimiterByGroup'
> {
  const {
    sessionRequestRate,
    sessionRequestBurst,
    hookRegistrationsPerGroupPerMinute,
    hookChangesPerGroupPerMinute,
    sourceParseMsPerSecond,
  } = limits;
  return {
    sessionRequestLimiter: new RateLimiter({
      perSecond: sessionRequestRate,
      burst: sessionRequestBurst,
      maxKeys: SESSION_REQUEST_LIMITER_KEYS,
    }),
    parseBudget: new ParseBudget(sourceParseMsPerSecond),
    typingLimiterByMember: new RateLimiter({
      perSecond: TYPING_PER_MEMBER_PER_SECOND,
      burst: TYPING_PER_MEMBER_PER_SECOND,
      maxKeys: TYPING_LIMITER_MEMBERS,
    }),
    hookRegistrationLimiterByGroup: perMinute(hookRegistrationsPerGroupPerMinute, HOOK_REGISTRATION_LIMITER_GROUPS),
    hookChangeLimiterByGroup: perMinute(hookChangesPerGroupPerMinute, HOOK_CHANGE_LIMITER_GROUPS),
  };
}

/** A limiter that allows each key this many uses a minute, even all at once. */
function perMinute(uses: number, maxKeys: number): RateLimiter<number> {
  return new RateLimiter({ perSecond: uses / 60, burst: uses, maxKeys });
}
