import type { Config } from '../config/config.ts';
import { hookState } from '../model/hook.ts';
import {
  MAX_COUNTED_REMOVED,
  type FailingHook,
  type HookHostsAndFailuresReport,
} from '../storage/hooks/hook-report.ts';
import { countWithNoun, ok, skipped, warning, type CheckResult } from './finding.ts';

/** The maximum number of failing hooks that are shown one by one; of the others, only the number is shown. */
export const MAX_LISTED_FAILING_HOOKS = 5;
/** A hook that its target removed (status 410) is reported for this long. */
export const RECENTLY_REMOVED_DAYS = 30;

const TODO = 'Look at the receivers; "klatch hook list --state failing" and "--state parked" show them all.';

/** The advice for failures whose cause is not the receiver. */
const ADVICE_BY_CATEGORY: Readonly<Record<string, string>> = {
  signature:
    'The server has no key to sign with: name a pair in modules.security.server-keys ("klatch setup" makes one) and restart.',
  'address policy': 'If Klatch may reach it, add its name or range to delivery.allow and restart the server.',
  dns: 'Look at the name and at the name servers of this machine.',
};

/** The advice for a failing hook. It says that nothing is lost, since no failure of a hook loses a message. */
function adviceFor({ id, category }: FailingHook): string {
  const advice = ADVICE_BY_CATEGORY[category ?? ''] ?? 'Look at the receiver.';
  return `${advice} Nothing is lost meanwhile; "klatch hook info ${id}" shows what is pending.`;
}

/** Results about hooks whose deliveries fail, and about hooks that their targets removed. */
export function evaluateFailingAndRemovedHooks(
  report: Pick<HookHostsAndFailuresReport, 'failing' | 'removedByTarget'>,
  config: Config,
): CheckResult[] {
  const found = [...evaluateFailing(report.failing, config), ...evaluateRemovedByTarget(report.removedByTarget)];
  return found.length > 0 ? found : [ok('no hook is failing')];
}

/** Warns of hooks that a 410 of their target removed: it may be a mistake, and a removed hook is no longer failing. */
function evaluateRemovedByTarget(count: number): CheckResult[] {
  if (count === 0) return [];
  const hooks = count < MAX_COUNTED_REMOVED ? countWithNoun(count, 'hook') : `${MAX_COUNTED_REMOVED} hooks or more`;
  const todo = '"klatch hook list --state removed" shows them; if a 410 was a mistake, "klatch hook restore <id>".';
  return [warning(`${hooks} removed by a 410 of the target in the last ${RECENTLY_REMOVED_DAYS} days`, todo)];
}

function evaluateFailing(failing: HookHostsAndFailuresReport['failing'], config: Config): CheckResult[] {
  const verdicts = failing.hooks.map((hook) => {
    const { id, conversationId, authority, failingSince } = hook;
    const health = { pausedAt: null, failures: 1, failingSince };
    const state = hookState(health, Date.now(), config.delivery.parkAfterMs);
    const what = `hook ${id} of group ${conversationId} to ${authority} is ${state} since ${failingSince.toISOString()}`;
    return warning(`${what}: ${failureReason(hook)}`, adviceFor(hook));
  });
  const notShownCount = failing.count - failing.hooks.length;
  if (notShownCount > 0) verdicts.push(warning(`${countWithNoun(notShownCount, 'more hook')} likewise`, TODO));
  return verdicts;
}

/** The reason as a phrase: `status 503`, `refused`, `address policy`. */
function failureReason({ category, code }: FailingHook): string {
  return code === null ? (category ?? 'no reason recorded') : `${category ?? 'status'} ${code}`;
}

/**
 * Checks whether there is a server key if hooks ask for the server's signature; `keySignedHooks` null: their number is
 * not known.
 */
export function evaluateServerKeys(config: Config, keySignedHooks: number | null): CheckResult {
  const keyPairCount = config.serverSigningKeys.length;
  if (keyPairCount === 0 && keySignedHooks === null) {
    return skipped('there is no key; whether a hook asks for one could not be read');
  }
  if (keyPairCount === 0 && keySignedHooks! > 0) {
    const todo = 'Run "klatch setup", which makes a pair of keys, and restart the server.';
    const what = `${countWithNoun(keySignedHooks!, 'hook')} asked for signatures with the server's keys, and there is no key`;
    return warning(what, todo);
  }
  if (keyPairCount === 0) return ok('none, and no hook asks for one');
  return ok(`${countWithNoun(keyPairCount, 'pair')} of PEM files, each complete`);
}
