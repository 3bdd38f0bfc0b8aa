import { lstatSync, statSync, type Stats } from 'node:fs';
import { dirname } from 'node:path';
import { describeUser } from './passwd.ts';

const STICKY = 0o1000;
const WRITABLE_BY_OTHERS = 0o002;

/**
 * Returns, as a phrase, why a folder must not hold a socket that only one user may open; null: it may. Other users may
 * be able to write to the parent, and so create the folder first and impersonate the server. So the folder has to be a
 * real one of mode 0700 that belongs to one of `allowedUids`. Other users must not be able to replace it in its parent.
 * Throws ENOENT.
 */
export function findFolderProblem(folder: string, allowedUids: readonly number[]): string | null {
  const found = lstatSync(folder);
  if (!found.isDirectory()) return `${folder} is not a folder`;
  if (!allowedUids.includes(found.uid)) return `${folder} belongs to ${describeUser(found.uid)}`;
  if ((found.mode & 0o777) !== 0o700) return `${folder} does not have mode 0700`;
  const parent = dirname(folder);
  if (hasReplaceableEntries(statSync(parent))) return `${parent} is writable by every user and has no sticky bit`;
  return null;
}

/** Without the sticky bit, everybody who may write to a folder may rename and remove the entries of others in it. */
function hasReplaceableEntries({ mode }: Stats): boolean {
  return (mode & WRITABLE_BY_OTHERS) !== 0 && (mode & STICKY) === 0;
}
