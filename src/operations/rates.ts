import type { LimitsConfig } from '../config/config.ts';
import { ParseBudget } from './parse-budget.ts';
import { Rate } from './rate.ts';
import type { Services } from './services.ts';

const GROUPS_REGISTERING = 10_000;
const GROUPS_CHANGING = 10_000;
const SESSIONS_WITH_A_RATE = 100_000;
/** Clients say every few seconds that somebody writes; more than one device may. */
const TYPING_PER_SECOND = 1;
const WRITING_AT_ONCE = 10_000;

/** How often things may be done, and how long callers may be parsed. */
export function createRates(
  limits: LimitsConfig,
): Pick<Services, 'sessionRate' | 'typingRate' | 'parseBudget' | 'registrations' | 'hookChanges'> {
  const { sessionRate, sessionBurst, registrationsPerMinute, hookChangesPerMinute, parseTimeMs } = limits;
  return {
    sessionRate: new Rate({ perSecond: sessionRate, burst: sessionBurst, keys: SESSIONS_WITH_A_RATE }),
    parseBudget: new ParseBudget(parseTimeMs),
    typingRate: new Rate({ perSecond: TYPING_PER_SECOND, burst: TYPING_PER_SECOND, keys: WRITING_AT_ONCE }),
    registrations: perMinute(registrationsPerMinute, GROUPS_REGISTERING),
    hookChanges: perMinute(hookChangesPerMinute, GROUPS_CHANGING),
  };
}

/** A rate of so many uses a minute and key, all of which may come at once. */
function perMinute(uses: number, keys: number): Rate<number> {
  return new Rate({ perSecond: uses / 60, burst: uses, keys });
}
