/** The checks, in the order in which their findings are shown. */
export const checkNames = [
  'configuration',
  'data directory',
  'server',
  'database',
  'disk',
  'clock',
  'address policy',
  'base-uri',
  'open files',
  'server keys',
  'hooks',
  'refused posts',
  'push',
  'files',
] as const;

export type CheckName = (typeof checkNames)[number];

/** `skipped`: the check could not be done, for a reason that another finding names or that is no fault. */
export type Level = 'ok' | 'warning' | 'error' | 'skipped';

/** A result of a check. Its texts contain no secret, no token, and no path or query of a hook's target. */
export interface Finding {
  readonly check: CheckName;
  readonly level: Level;
  /** The result: one sentence without a full stop. */
  readonly found: string;
  /** The remedy, as a sentence; null where nothing is to be done. */
  readonly todo: string | null;
}

/** A finding without the name of its check. */
export type CheckResult = Omit<Finding, 'check'>;

export const ok = (found: string): CheckResult => ({ level: 'ok', found, todo: null });
export const skipped = (found: string): CheckResult => ({ level: 'skipped', found, todo: null });
export const warning = (found: string, todo: string): CheckResult => ({ level: 'warning', found, todo });
export const error = (found: string, todo: string): CheckResult => ({ level: 'error', found, todo });

/** A number with its noun, such as `1 hook` or `2 hooks`. */
export function countWithNoun(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

/**
 * The result for an unexpected error. It shows the error's code or name only, since the message could contain a secret.
 */
export function unexpectedErrorResult(cause: unknown): CheckResult {
  const { code, name } = cause as { code?: unknown; name?: unknown };
  const what = typeof code === 'string' ? code : String(name);
  return error(`could not be looked at (${what})`, 'Look at what the code says; run it as root if it is about rights.');
}
