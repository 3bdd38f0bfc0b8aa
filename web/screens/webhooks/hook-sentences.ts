import { errorSentence, replyProblemSentence } from '../../../client/core/delivery-sentences.ts';
import type { Attempt, Hook, ListedHook } from '../../core/webhooks/hook-api.ts';
import { shortMomentOf, momentOf } from '../../words/dates.ts';
import { hookWords } from '../../words/hook-words.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** The time until a moment, such as `in 4 min`; `now` if it has passed. */
export function untilMoment(iso: string, nowMs: number): string {
  const ms = Date.parse(iso) - nowMs;
  if (ms <= 0) return 'now';
  if (ms < MINUTE_MS) return `in ${Math.ceil(ms / 1_000)} s`;
  if (ms < HOUR_MS) return `in ${Math.round(ms / MINUTE_MS)} min`;
  return `in ${Math.round(ms / HOUR_MS)} h`;
}

/** The state of a hook in one to three sentences: why it is in this state, what the server does next, what waits. */
export function hookSentence(hook: Hook, nowMs: number): string {
  const { state, pending, last_error: lastError, failing_since: failingSince, next_attempt_at: next, removed } = hook;
  const waiting =
    pending === 0 ? 'Nothing waits.' : `${hookWords.messages(pending)} ${pending === 1 ? 'waits' : 'wait'}.`;
  const reason = lastError === null ? '' : `: ${errorSentence(lastError)}`;
  if (removed !== null) return removalSentence(removed);
  if (state === 'paused') return `Paused: the server sends nothing. ${waiting}`;
  if (state === 'active') {
    if (pending > 0) return `The receiver takes its messages. ${waiting}`;
    const last =
      hook.last_success_at === null ? 'Nothing was sent yet.' : `Last delivery ${shortMomentOf(hook.last_success_at)}.`;
    return `${waiting} ${last}`;
  }
  const since = failingSince === null ? '' : ` since ${shortMomentOf(failingSince)}`;
  const attempt = next === null ? 'The server tries it now.' : `Next attempt ${untilMoment(next, nowMs)}.`;
  return `Failing${since}${reason}. ${attempt} ${waiting} The server keeps trying.`;
}

function removalSentence({ at, by, restorable_until: until }: NonNullable<Hook['removed']>): string {
  if (by === 'client') return `Removed ${momentOf(at)} by somebody who manages the group.`;
  const restorable = until === null ? '' : ` You can restore it until ${momentOf(until)}.`;
  return `Removed ${momentOf(at)}: the receiver answered 410, which ends the deliveries.${restorable}`;
}

/** Why the last attempt of a hook failed; empty if none failed. */
export function lastErrorOf({ last_error: error }: Pick<ListedHook, 'last_error'>): string {
  return error === null ? '' : `${errorSentence(error)} (${shortMomentOf(error.at)})`;
}

/** The result of an attempt as a sentence. */
export function attemptSentence(attempt: Attempt): string {
  const { outcome, category, code } = attempt;
  if (outcome === 'delivered')
    return category === null
      ? `delivered, answered ${code}`
      : `delivered, answered ${code}; ${replyProblemSentence(category)}`;
  if (outcome === 'expired') return 'removed by a retention rule before it was delivered';
  if (outcome === 'skipped') return category === 'too old' ? 'passed over: too old' : 'skipped on request';
  if (outcome === 'dead_lettered') return `set aside: ${errorSentence(attempt)}`;
  if (outcome === 'unregistered') return `hook removed: ${errorSentence(attempt)}`;
  return `failed: ${errorSentence(attempt)}`;
}
