import { statSync } from 'node:fs';
import { error, ok, warning, type CheckResult } from './finding.ts';
import type { LastFailure } from './last-failure.ts';

/** What the running server says about itself, or what to think of it saying nothing. */
export type ServerAnswer =
  | { readonly version: string; readonly pid: number; readonly ready: boolean; readonly startedAt: Date }
  | ServerUnreachable;

/** A server that says nothing. */
export interface ServerUnreachable {
  readonly unreachableResult: CheckResult;
  /** Nothing has the data directory: a server can be started on it. */
  readonly isDataDirUnlocked: boolean;
  /** Null: its last run did not fail. */
  readonly failure: LastFailure | null;
}

/** Judges a server by its answer. `version` is this program's, `file` the configuration that it would read now. */
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
  return found.length > 0 ? found : [ok(`Klatch ${version} runs (pid ${answer.pid}) and can do its work`)];
}
