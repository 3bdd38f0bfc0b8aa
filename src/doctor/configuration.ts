import { statSync } from 'node:fs';
import type { Config } from '../config/config.ts';
import { loadConfig } from '../config/load.ts';
import type { Environment } from '../config/tree.ts';
import { ConfigError, formatProblem, NotConfiguredError, type ConfigProblem } from '../config/problem.ts';
import { findRiskySettings } from './risky-settings.ts';
import { error, ok, warning, type CheckResult } from './finding.ts';

const EDIT = 'Change it in the file and restart the server; docs/configuration.md explains every key.';
const OTHER_USER_ADVICE = 'Run it as root, or as the user of the server.';
/** Recognizes a warning about a file that others can read: its remedy is a chmod, not an edit of the configuration. */
const READABLE_BY_OTHERS = / can be read by every user/;
const CHMOD = 'Run that chmod as root or as the owner of the file; no restart is needed.';
const SETUP = 'Run "klatch setup", or write these keys into the file.';

/** The results of the check of the configuration; and the configuration, if the server would start with it. */
interface ConfigurationReading {
  readonly config: Config | null;
  readonly verdicts: readonly CheckResult[];
}

/**
 * Reads the configuration as the server would. Reports every mistake, every warning, unsafe file modes and risky
 * values.
 */
export function checkConfiguration(file: string, env: Environment): ConfigurationReading {
  try {
    const { config, warnings } = loadConfig(file, { env });
    const results = [
      ...warnings.map((each) => warning(each, READABLE_BY_OTHERS.test(each) ? CHMOD : EDIT)),
      ...findWritableByOthers([file, ...config.serverSigningKeys.map((pair) => pair.private)]),
      ...findRiskySettings(config),
    ];
    return { config, verdicts: results.length > 0 ? results : [ok(`${file} has no mistakes`)] };
  } catch (cause) {
    if (cause instanceof ConfigError) {
      return unusableConfiguration(
        cause.problems.map((each) => error(formatProblem(each), isReadAccessDenied(each) ? OTHER_USER_ADVICE : EDIT)),
      );
    }
    if (cause instanceof NotConfiguredError) {
      const missing = cause.missing.map((each) => error(formatProblem(each), SETUP));
      return unusableConfiguration([...missing, ...cause.problems.map((each) => error(formatProblem(each), EDIT))]);
    }
    if (!(cause instanceof Error) || !('syscall' in cause)) throw cause;
    const { path, code } = cause as NodeJS.ErrnoException;
    return unusableConfiguration([error(`${path ?? file} cannot be read (${code})`, OTHER_USER_ADVICE)]);
  }
}

function unusableConfiguration(verdicts: readonly CheckResult[]): ConfigurationReading {
  return { config: null, verdicts };
}

/** Whether the problem is only that this user may not read a file: the remedy is to run the check as another user. */
function isReadAccessDenied({ key, sentence }: ConfigProblem): boolean {
  return (key === '' || key.startsWith('modules.security.server-keys')) && /\((?:EACCES|EPERM)\)/.test(sentence);
}

/** Warns of files that others can write: a user who changes one of these files controls the server. */
function findWritableByOthers(files: readonly string[]): CheckResult[] {
  return files.flatMap((file) => {
    const stat = statSync(file, { throwIfNoEntry: false });
    if (stat === undefined || (stat.mode & 0o022) === 0) return [];
    const who = (stat.mode & 0o002) === 0 ? 'its group' : 'every user of this machine';
    return [warning(`${file} can be written by ${who}`, 'chmod go-w')];
  });
}
