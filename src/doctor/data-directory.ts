import { stat } from 'node:fs/promises';
import { error, ok, warning, type CheckResult } from './finding.ts';

/** Checks the data directory's owner and mode. `runningServerUid` null: no server runs, or its user is not known. */
export async function checkDataDirectoryOwnership(path: string, runningServerUid: number | null): Promise<CheckResult> {
  let stats: Awaited<ReturnType<typeof stat>>;
  try {
    stats = await stat(path);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code === 'ENOENT') return ok(`${path} is not there yet: the first start makes it`);
    return error(`${path} cannot be reached (${code})`, 'Make it for the user of the server, or change data-dir.');
  }
  if (!stats.isDirectory()) return error(`${path} is not a folder`, 'Move it away, or change data-dir.');
  if ((stats.mode & 0o022) !== 0) {
    return warning(`${path} can be written by others than its owner`, 'chmod go-w: who writes there runs the server.');
  }
  if (runningServerUid !== null && runningServerUid !== 0 && stats.uid !== runningServerUid) {
    const todo = `chown it to the user of the server (uid ${runningServerUid}), with all that is in it.`;
    return error(`${path} belongs to uid ${stats.uid} and the server runs as uid ${runningServerUid}`, todo);
  }
  return ok(`${path} belongs to uid ${stats.uid}`);
}
