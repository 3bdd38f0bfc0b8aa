/** The checks, in the order in which they are shown. */
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

/** `skipped`: the check was not possible, for a reason that another finding names or that is no fault. */
export type Level = 'ok' | 'warning' | 'error' | 'skipped';

/** The result of one check. Neither text holds a secret, a token, or a target's path or query. */
export interface Finding {
  readonly check: CheckName;
  readonly level: Level;
  /** The result: one sentence without a full stop. */
  readonly found: string;
  /** The remedy; null where none is needed. */
  readonly todo: string | null;
}

/** The result of a check, before its name is added. */
export type CheckResult = Omit<Finding, 'check'>;

export const ok = (found: string): CheckResult => ({ level: 'ok', found, todo: null });
export const skipped = (found: string): CheckResult => ({ level: 'skipped', found, todo: null });
export const warning = (found: string, todo: string): CheckResult => ({ level: 'warning', found, todo });
export const error = (found: string, todo: string): CheckResult => ({ level: 'error', found, todo });

/** `1 hook`, `2 hooks`. */
export function countWithNoun(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

/** The result of an unknown failure of a check; named by its code, since its message could hold anything. */
export function unexpected(cause: unknown): CheckResult {
  const { code, name } = cause as { code?: unknown; name?: unknown };
  const what = typeof code === 'string' ? code : String(name);
  return error(`could not be looked at (${what})`, 'Look at what the code says; run it as root if it is about rights.');
}
