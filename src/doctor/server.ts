import { statSync } from 'node:fs';
import { countWithNoun, error, ok, warning, type CheckResult } from './finding.ts';
import type { LastFailure } from './last-failure.ts';

/** The running server's report about itself, or the result for a server that did not answer. */
export type ServerAnswer =
  | {
      readonly version: string;
      readonly pid: number;
      readonly ready: boolean;
      readonly startedAt: Date;
      /** Hooks whose receivers seem to answer each delivery with another post into the group. */
      readonly loops: readonly { readonly hook: number; readonly group: number }[];
    }
  | ServerUnreachable;

export interface ServerUnreachable {
  readonly unreachableResult: CheckResult;
  /** No process holds the lock of the data directory: a server can be started on it. */
  readonly isDataDirUnlocked: boolean;
  /** How the last run failed; null: it did not fail. */
  readonly failure: LastFailure | null;
}

/**
 * Evaluates a server's answer. `version` is this program's version, `file` is the configuration that it would read now.
 */
export function evaluateServer(
  answer: ServerAnswer,
  { version, file }: { version: string; file: string },
): CheckResult[] {
  if ('unreachableResult' in answer) return [answer.unreachableResult];
  const found: CheckResult[] = [];
  if (answer.version !== version) {
    const what = `the server is Klatch ${answer.version} and this program is ${version}`;
    found.push(warning(what, 'Restart the server to have it run this version.'));
  }
  const changedAt = statSync(file, { throwIfNoEntry: false })?.mtime;
  if (changedAt !== undefined && changedAt > answer.startedAt) {
    const what = `${file} was changed after the server had read it`;
    found.push(warning(what, 'Restart the server: a change takes effect at the next start.'));
  }
  if (!answer.ready) {
    found.push(error('the server runs and its database does not answer', 'See what is said about the database.'));
  }
  found.push(...evaluateLoops(answer.loops));
  return found.length > 0 ? found : [ok(`Klatch ${version} runs (pid ${answer.pid}) and can do its work`)];
}

/** The maximum number of loops that are shown one by one; of the others, only the number is shown. */
const MAX_LISTED_LOOPS = 5;

function evaluateLoops(loops: readonly { readonly hook: number; readonly group: number }[]): CheckResult[] {
  const todo =
    'Let its receiver copy the header klatch-hops into its posts, or change the hook with "skip": ["webhook"].';
  const listed = loops.slice(0, MAX_LISTED_LOOPS).map(({ hook, group }) => {
    const what = `hook ${hook} of group ${group} looks like a loop: each delivery is followed by a post within 2 s`;
    return warning(what, todo);
  });
  const notShownCount = loops.length - listed.length;
  return notShownCount === 0
    ? listed
    : [...listed, warning(`${countWithNoun(notShownCount, 'more hook')} likewise`, todo)];
}
