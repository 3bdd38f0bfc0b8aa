import { statSync } from 'node:fs';
import type { LockHolder } from '../storage/data-dir-lock.ts';
import { error, ok, skipped, warning, type Verdict } from './finding.ts';

/** What the running server says about itself, or why it says nothing. */
export type ServerAnswer =
  | { readonly version: string; readonly pid: number; readonly ready: boolean; readonly startedAt: Date }
  | { readonly silence: string };

/** Judges a server by its answer; `holder` null: nobody runs on the data directory. */
export function judgeServer(
  answer: ServerAnswer,
  parts: { holder: LockHolder | null; version: string; file: string },
): Verdict[] {
  const { holder, version, file } = parts;
  if (holder === null) return [skipped('no server runs; "klatch status" says why')];
  if ('silence' in answer) {
    const todo = 'Look at "klatch status" and at the log: it may be starting or stopping. If it hangs, restart it.';
    return [error(answer.silence, todo)];
  }
  const found: Verdict[] = [];
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
